// Ways: the alternatives among which the planner chooses for one direction of a step. Each is a set of settings that
// makes the planner choose it, so that the benchmark can force it and a repeated step can try it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace tapioca::plan {

struct Alternative {
    static constexpr int left = -1;

    int aggregators = 0;             ///< 0: direct; `left`: the drop-in library leaves the access to the MPI library
    double seconds = 0;              ///< predicted; unknown if the access is left
    std::uint64_t buffer_bytes = 0;  ///< of each buffer; 0: as the planner sizes them

    [[nodiscard]] std::string name() const;
    [[nodiscard]] bool is_left() const { return aggregators == left; }
    /// True if it is the same way, whatever was predicted.
    [[nodiscard]] bool same_as(Alternative const& other) const
    {
        return aggregators == other.aggregators && buffer_bytes == other.buffer_bytes;
    }
    /// Returns `options` with the settings that make the planner choose this way. @pre the way is not to leave the
    /// access to another library
    [[nodiscard]] Options apply(Options options) const;
};

/// Numbers of aggregators worth considering on one node: powers of two, the number that the file system takes, all
/// ranks.
std::vector<int> numbers(Job const& job, int streams);

/// All ways that the options permit, including the route's own number of aggregators with other buffers; ordered by
/// predicted time. On several nodes only direct access, because the times of other numbers depend on their places.
std::vector<Alternative> alternatives(Job const& job, Route const& route, bool reading);
/// What jobs with the same fastest way have in common, in words: machine, file system, ranks, sizes in powers of two.
std::string shape_of(Job const& job, bool reading);
/// The way that a route of this job takes.
Alternative taken_by(Route const& route);

}  // namespace tapioca::plan
