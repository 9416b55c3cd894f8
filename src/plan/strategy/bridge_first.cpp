// BRIDGE_FIRST: what MPICH did on Blue Gene/Q. Every block of nodes (Pset) gets the same number of aggregators: first
// on the nodes with a link to the file system, then on the others in the order of ranks.
#include <algorithm>

#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

using core::index;

constexpr double elsewhere = 1e12;  // used only if a block has no room

int block_of(Election const& election, std::size_t node)
{
    auto const block = election.machine->gateways.block;
    return block > 0 ? election.where[node] / block : 0;
}

/// The blocks of the machine that the job is on.
std::vector<int> blocks_of(Election const& election)
{
    std::vector<bool> used;
    for (std::size_t node = 0; node < election.where.size(); ++node) {
        auto const block = index(block_of(election, node));
        if (used.size() <= block) used.resize(block + 1, false);
        used[block] = true;
    }
    std::vector<int> blocks;
    for (std::size_t block = 0; block < used.size(); ++block)
        if (used[block]) blocks.push_back(static_cast<int>(block));
    return blocks;
}

/// A block gets neighbouring partitions, and its k-th node the k-th of them.
Scorer score_bridges_first(Election const& election, std::size_t partition)
{
    auto const blocks = blocks_of(election);
    auto const all = election.partitions.size();
    auto const number = partition * blocks.size() / all;
    auto const first = (number * all + blocks.size() - 1) / blocks.size();  // number of the partition within the block
    std::vector<std::size_t> order;
    for (std::size_t node = 0; node < election.where.size(); ++node)
        if (block_of(election, node) == blocks[number]) order.push_back(node);
    auto const& bridges = election.machine->gateways.nodes;
    std::stable_partition(order.begin(), order.end(), [&](std::size_t node) {
        return std::binary_search(bridges.begin(), bridges.end(), election.where[node]);
    });
    std::vector<double> scores(election.where.size(), elsewhere);
    for (std::size_t i = 0; i < order.size(); ++i)
        scores[order[i]] =
            1 + static_cast<double>((i + order.size() - (partition - first) % order.size()) % order.size());
    return [scores = std::move(scores)](int node, Cost const&) { return scores[index(node)]; };
}

}  // namespace

extern Strategy const bridge_first;
Strategy const bridge_first = {
    "nothing: bridge nodes, then node after node, in every block alike, as MPICH did on Blue Gene/Q",
    "when all nodes of its block have one",
    true,
    false,
    score_bridges_first,
    one_each,
};

}  // namespace tapioca::plan
