// Ways: what the planner chooses from for one direction of a step. Each is a handful of settings that make it choose
// that one, so that the benchmark can force it and a step that runs again can try it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace tapioca::plan {

struct Alternative {
    static constexpr int left = -1;

    int aggregators = 0;             ///< 0: direct; `left`: the drop-in library leaves the access to the MPI library
    double seconds = 0;              ///< predicted; unknown for what is left
    std::uint64_t buffer_bytes = 0;  ///< of each buffer; 0: as the planner sizes them

    [[nodiscard]] std::string name() const;
    [[nodiscard]] bool is_left() const { return aggregators == left; }
    /// True if it goes the same way, whatever was predicted.
    [[nodiscard]] bool same_as(Alternative const& other) const
    {
        return aggregators == other.aggregators && buffer_bytes == other.buffer_bytes;
    }
    /// `options` with those settings that make the planner go this way. @pre it is not left to another library
    [[nodiscard]] Options apply(Options options) const;
};

/// Numbers of aggregators that are worth a look on one node: powers of two, what the file system takes, all ranks.
std::vector<int> numbers(Job const& job, int streams);

/// All ways that the options leave open, the route's own number of aggregators with other buffers among them; the
/// fastest by prediction first. On several nodes only direct access: what other numbers take depends on their places.
std::vector<Alternative> alternatives(Job const& job, Route const& route, bool reading);
/// What jobs have in common that a way is the fastest for, in words: machine, file system, ranks, sizes in powers of
/// two.
std::string shape_of(Job const& job, bool reading);
/// The one that a route of this job takes.
Alternative taken_by(Route const& route);

}  // namespace tapioca::plan
