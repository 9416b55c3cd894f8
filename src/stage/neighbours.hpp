// Neighbours: the logs of a node's other ranks, which a rank that reads by itself can see without asking.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stage/content.hpp"
#include "stage/files.hpp"

namespace tapioca::stage {

class Neighbours {
public:
    /// A log of the node, and where it goes on when its tier is full.
    struct Log {
        Place place;
        std::vector<Place> overflow = {};
        bool own = false;  ///< nobody else appends to it
    };
    Neighbours() = default;
    explicit Neighbours(std::vector<Log> logs) : logs_(std::move(logs)) {}

    /// What others tell without being asked. Cheap after the first time.
    struct State {
        std::int64_t begin;      ///< no byte that others have is before it
        std::int64_t end;        ///< or behind it
        std::uint64_t appended;  ///< another number whenever somebody has appended something
    };
    [[nodiscard]] State state();
    /// Adds all that is in the logs now, this rank's own among them.
    core::Status add_to(Content& content) const;
    /// Adds what others than `rank` have of `epoch` or later, by Content::add_others. Every time an epoch is named that
    /// is no earlier.
    core::Status add_others_to(Content& content, std::uint32_t rank, std::uint64_t epoch);
    /// The logs were emptied.
    void begin_anew() { passed_.clear(); }

private:
    std::vector<Log> logs_;
    std::map<std::string, Content::Cursors> passed_;  ///< of each log: what is too early to be of use
    std::vector<Mapped> first_pages_;
};

}  // namespace tapioca::stage
