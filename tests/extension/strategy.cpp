// LAST_NODES: a strategy that the library does not have. The last nodes of the job aggregate.
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

Scorer score_from_the_end(Election const& election, std::size_t /*partition*/)
{
    return [nodes = election.where.size()](int node, Cost const&) { return static_cast<double>(nodes) - node; };
}

}  // namespace

extern Strategy const last_nodes;
Strategy const last_nodes = {
    "the number of nodes behind it", "when all nodes have one", false, false, score_from_the_end, one_each,
};

}  // namespace tapioca::plan
