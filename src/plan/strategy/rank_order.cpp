// RANK_ORDER: one node after the other aggregates, as in MPICH, wherever the data is.
#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

/// One node after the other, starting over after the last.
Scorer score_in_order(Election const& election, std::size_t partition)
{
    auto const nodes = static_cast<int>(election.where.size());
    int const first = static_cast<int>(partition % core::index(nodes));
    return [nodes, first](int node, Cost const&) { return (node - first + nodes) % nodes + 1; };
}

}  // namespace

extern Strategy const rank_order;
Strategy const rank_order = {
    "nothing: node after node, as MPICH does", "when all nodes have one", true, false, score_in_order, one_each,
};

}  // namespace tapioca::plan
