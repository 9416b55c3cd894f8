// HACC-IO, also for those who need it without a command line of its own.
#pragma once

#include "workloads/workload.hpp"

namespace workloads {

/// How particles are spread over ranks; the same on all of them.
struct Sizes {
    std::string distribution = "uniform";  ///< or normal: a quarter of the mean as deviation
    std::uint64_t seed = 1;
    std::string heavy = "none";  ///< the half of the ranks, first or last, that has `share` of all data
    double share = 0.75;
};

/// What a rank with `mine` particles moves, with `before` of them on lower ranks, of `total` in all. `layout` is aos
/// (rank by rank, each with its nine arrays one after the other) or soa (variable by variable, each with the arrays of
/// all ranks one after the other).
RankPart hacc_part(std::string_view layout, std::int64_t mine, std::int64_t before, std::int64_t total);

/// `particles` of each of `ranks` ranks, on average; `layout` is aos or soa.
Workload make_hacc(int ranks, std::int64_t particles, std::string const& layout, Sizes const& sizes = {});

}  // namespace workloads
