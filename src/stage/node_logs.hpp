// NodeLogs: the logs of a node's other ranks, which a rank that reads by itself can see without asking.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stage/log_content.hpp"
#include "stage/log_files.hpp"
#include "stage/surface.hpp"

namespace tapioca::stage {

class NodeLogs {
public:
    /// A log of the node, and where it goes on for each of its users when its tier is full.
    struct Log {
        LogPlace place;
        struct User {
            std::uint32_t rank;
            LogPlace beside;
        };
        std::vector<User> users = {};
        bool own = false;  ///< nobody else appends to it
    };
    NodeLogs() = default;
    explicit NodeLogs(std::vector<Log> logs) : logs_(std::move(logs)) {}

    /// What others tell without being asked. Cheap after the first time.
    struct LogState {
        std::int64_t begin;  ///< no byte that others have is before it
        std::int64_t end;    ///< or behind it
    };
    [[nodiscard]] LogState state();
    /// Adds all that is in the logs now, this rank's own among them.
    core::Status add_to(LogContent& content) const;
    /// Adds what others than `rank` have of `epoch` or later, by Content::add_others. Every time an epoch is named that
    /// is no earlier.
    core::Status add_others_to(LogContent& content, std::uint32_t rank, std::uint64_t epoch);
    /// Brings the others' part of a surface up to date. How many entries were looked at.
    core::Result<std::uint64_t> update(Surface& surface, std::uint32_t rank);
    /// The logs were emptied.
    void begin_anew();

private:
    std::vector<Log> logs_;
    std::map<std::string, LogContent::Cursors> passed_;  ///< of each log: what is too early to be of use
    /// False if some cannot be had now.
    bool find_pages();

    std::vector<MappedFile> first_pages_;  ///< of each log but this rank's own
    std::vector<std::uint64_t> known_;     ///< of each log: Counters::appended when the surface was brought up to date
};

}  // namespace tapioca::stage
