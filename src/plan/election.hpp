// Election: chooses the places of all aggregators at once. Every node bids for every partition; the best bids are kept
// and assigned in the same way on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/strategies.hpp"
#include "plan/cost.hpp"
#include "plan/strategy/strategy.hpp"
#include "plan/weight.hpp"

namespace tapioca::plan {

/// The input of the election; the same on every rank.
struct Election {
    machine::Machine const* machine = nullptr;
    std::vector<int> where;                              ///< for each of the job's nodes, its number in the machine
    std::vector<std::vector<std::uint64_t>> free_bytes;  ///< per node, or one for all: per tier; 0: no such tier
    std::vector<int> aggregator_places;  ///< number of aggregators that each of the job's nodes may take
    struct Partition {
        std::vector<machine::Source> sources;  ///< by the machine's nodes, each once; empty: derived from the weights
        double bytes = 0;
        double rounds = 1;
    };
    std::vector<Partition> partitions;
    std::vector<Weight> weights;     ///< the job's nodes' data in the partitions, ascending by first partition
    std::uint64_t needed_bytes = 0;  ///< by an aggregator: its buffers or, with persistency, the most data sent to it
    Persistency persistency = Persistency::none;
    std::optional<std::size_t> pinned;  ///< the tier that was asked for; then only the node is chosen
    bool remote_storage = false;        ///< data also crosses the node's link on its way to the file
    Model model = Model::pipelined;
    Strategy const* strategy = strategy_named(core::default_strategy);

    /// Sets the weights, which may be in any order.
    void weigh(std::vector<Weight> found);
    [[nodiscard]] CostModel costs() const;
    /// The sources of a partition's data, by the machine's nodes, each once. Computed on request, since all lists
    /// together grow with nodes times partitions.
    [[nodiscard]] std::vector<machine::Source> sources(std::size_t partition) const;
    [[nodiscard]] std::uint64_t free_on(int node, std::size_t tier) const;
    /// The number of aggregators that fit on a node's tier, and that the node may take.
    [[nodiscard]] std::uint64_t fit_on(int node, std::size_t tier) const;
    [[nodiscard]] int fit_on(int node) const;

private:
    std::size_t longest_weight_ = 0;  ///< the largest number of partitions that a weight covers
};

/// A node's offer to aggregate a partition.
struct Bid {
    double score = 0;  ///< the value that the strategy minimises
    Cost cost;
    std::uint64_t lot = 0;   ///< a random number that orders equal bids, different for each partition
    std::int32_t node = -1;  ///< of the job; -1: no bid
    std::int32_t tier = 0;
};
/// The number of bids kept for a partition: that of the nodes, but at most 16.
std::size_t bids_kept(Election const& election);
/// bids_kept() bids for each partition, the best first. The order of equal bids differs from partition to partition.
using Bids = std::vector<Bid>;

/// No bids: the contribution of a rank that is not its node's first.
Bids no_bids(Election const& election);
/// One node's bids.
Bids bids_of(Election const& election, int node);
/// Every node's bid for one partition, by node.
std::vector<Bid> offers(Election const& election, std::size_t partition);
/// The best of offers(): the same as merging all nodes' bids_of(), except for rounding.
Bids all_bids(Election const& election);
/// Keeps the best of two nodes' bids for one partition, as many as `kept` has. The result does not depend on the order
/// of merging.
void merge(std::span<Bid> kept, std::span<Bid const> others);

/// The place of a partition's aggregator, and the other candidates.
struct AggregatorPlace {
    int node = 0;
    std::size_t tier = 0;
    double score = 0;
    Cost cost;
    std::vector<Bid> rivals;  ///< the next best, by score
};

/// Fails if the buffers fit nowhere; the error contains the sizes.
core::Result<std::vector<AggregatorPlace>> assign(Election const& election, Bids const& bids);

/// Notes about aggregators that are not on the fastest tier because it has no room.
std::vector<std::string> notes_on(Election const& election, std::vector<AggregatorPlace> const& aggregator_places);

/// The value that assign() minimises: the sum of all aggregators' scores, with their nodes' surcharges.
double total_score(Election const& election, std::vector<AggregatorPlace> const& aggregator_places);

}  // namespace tapioca::plan
