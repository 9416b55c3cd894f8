// NodeLogs: the logs of a node's other ranks, which a rank that reads by itself can see without communication.
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
    /// A log of the node, and for each of its users the place where it continues when its tier is full.
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

    /// What other ranks publish in their logs. Cheap after the first call.
    struct LogState {
        std::int64_t begin;  ///< other ranks have no byte before this
        std::int64_t end;    ///< other ranks have no byte from here on
    };
    [[nodiscard]] LogState state();
    /// How many entries the other ranks' logs have; more than any if that is not known. Cheap after the first call.
    [[nodiscard]] std::uint64_t entries();
    /// Adds everything that is in the logs now, including this rank's own.
    core::Status add_to(LogContent& content) const;
    /// Adds the requests of ranks other than `rank` from `epoch` on, with LogContent::add_others. From call to call,
    /// `epoch` must not decrease.
    core::Status add_others_to(LogContent& content, std::uint32_t rank, std::uint64_t epoch);
    /// Brings the other ranks' part of a surface up to date. Returns how many entries were read.
    core::Result<std::uint64_t> update(Surface& surface, std::uint32_t rank);
    /// To be called after the logs were emptied.
    void begin_anew();

private:
    std::vector<Log> logs_;
    std::map<std::string, LogContent::Cursors> passed_;  ///< per log: entries that are too early to be needed
    /// Returns false if some pages cannot be mapped now.
    bool find_pages();

    std::vector<MappedFile> first_pages_;  ///< of each log except this rank's own
    std::vector<std::uint64_t> known_;     ///< per log: Counters::appended at the last update of the surface
};

}  // namespace tapioca::stage
