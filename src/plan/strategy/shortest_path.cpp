// SHORTEST_PATH: the fewest hops to the file win or, if that path is unknown, the fewest hops from the producers.
#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

Scorer score_short_paths(Election const& election, std::size_t partition)
{
    return [&election, hops = path_hops(election, partition)](int node, Cost const&) {
        return 1 + hops[core::index(election.where[core::index(node)])];
    };
}

}  // namespace

extern Strategy const shortest_path;
Strategy const shortest_path = {
    "hops to the file, or from the producers where that is unknown",
    "when all nodes have one",
    false,
    false,
    score_short_paths,
    one_each,
};

}  // namespace tapioca::plan
