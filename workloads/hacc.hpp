// HACC-IO, also for uses without its own command line.
#pragma once

#include "workloads/workload.hpp"

namespace workloads {

/// How particles are distributed over ranks; the same on all ranks.
struct Sizes {
    std::string distribution = "uniform";  ///< or normal: the deviation is a quarter of the mean
    std::uint64_t seed = 1;
    std::string heavy = "none";  ///< the half of the ranks, first or last, that has `share` of all data
    double share = 0.75;
};

/// The data of a rank with `mine` particles; `before` are on lower ranks, and there are `total` in all. `layout` is aos
/// (rank by rank, each with its nine arrays one after the other) or soa (variable by variable, each with the arrays of
/// all ranks one after the other).
RankPart hacc_part(std::string_view layout, std::int64_t mine, std::int64_t before, std::int64_t total);

/// `particles` is the average of each of `ranks` ranks; `layout` is aos or soa.
Workload make_hacc(int ranks, std::int64_t particles, std::string const& layout, Sizes const& sizes = {});

}  // namespace workloads
