// LONGEST_PATH: the most hops win, for comparison with SHORTEST_PATH.
#include <algorithm>

#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

Scorer score_long_paths(Election const& election, std::size_t partition)
{
    auto hops = path_hops(election, partition);
    auto const most = *std::max_element(hops.begin(), hops.end());
    return [&election, hops = std::move(hops), most](int node, Cost const&) {
        return 1 + most - hops[core::index(election.where[core::index(node)])];
    };
}

}  // namespace

extern Strategy const longest_path;
Strategy const longest_path = {
    "the opposite: the most hops win", "when all nodes have one", false, false, score_long_paths, one_each,
};

}  // namespace tapioca::plan
