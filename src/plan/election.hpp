// Election: the places of all aggregators in one step. Every node bids for every partition; the best bids are kept and
// assigned, the same way everywhere.
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

/// What is decided about; the same on every rank.
struct Election {
    machine::Machine const* machine = nullptr;
    std::vector<int> where;                              ///< the machine's node of each of the job's nodes
    std::vector<std::vector<std::uint64_t>> free_bytes;  ///< per job node, or one for all: per tier; 0: none there
    std::vector<int> aggregator_places;                  ///< aggregators that each of the job's nodes may take
    struct Partition {
        std::vector<machine::Source> sources;  ///< by the machine's nodes, each once; empty: as the weights say
        double bytes = 0;
        double rounds = 1;
    };
    std::vector<Partition> partitions;
    std::vector<Weight> weights;     ///< what the job's nodes have in the partitions, ascending by the first of them
    std::uint64_t needed_bytes = 0;  ///< by an aggregator: its buffers or, with persistency, the most data it is sent
    Persistency persistency = Persistency::none;
    std::optional<std::size_t> pinned;  ///< the tier asked for: only the place is open
    bool remote_storage = false;        ///< data leaves the node also on its way to the file
    Model model = Model::pipelined;
    Strategy const* strategy = strategy_named(core::default_strategy);

    /// Takes weights in any order.
    void weigh(std::vector<Weight> found);
    [[nodiscard]] CostModel costs() const;
    /// Who has data in a partition, by the machine's nodes, each once. Made when asked for: all lists together grow
    /// with nodes times partitions.
    [[nodiscard]] std::vector<machine::Source> sources(std::size_t partition) const;
    [[nodiscard]] std::uint64_t free_on(int node, std::size_t tier) const;
    /// Aggregators that fit on a node's tier, and on the node.
    [[nodiscard]] std::uint64_t fit_on(int node, std::size_t tier) const;
    [[nodiscard]] int fit_on(int node) const;

private:
    std::size_t longest_weight_ = 0;  ///< the most partitions that a weight is for
};

/// A node's offer to aggregate a partition.
struct Bid {
    double score = 0;  ///< what the strategy minimises
    Cost cost;
    std::uint64_t lot = 0;   ///< decides between equals, another way for each partition
    std::int32_t node = -1;  ///< of the job; -1: no bid
    std::int32_t tier = 0;
};
/// Bids that are kept for a partition: as many as there are nodes, but no more than 16.
std::size_t bids_kept(Election const& election);
/// bids_kept() for each partition, the best first. Among equals the order differs from partition to partition.
using Bids = std::vector<Bid>;

/// No bids at all: what a rank contributes that is not its node's first.
Bids no_bids(Election const& election);
/// One node's bids.
Bids bids_of(Election const& election, int node);
/// Every node's bid for one partition, by node.
std::vector<Bid> offers(Election const& election, std::size_t partition);
/// The best of offers(): the same as merging all nodes' bids_of(), but for rounding.
Bids all_bids(Election const& election);
/// Keeps the best of two nodes' bids for one partition, as many as there are. In any order of merging the result is the
/// same.
void merge(std::span<Bid> kept, std::span<Bid const> others);

/// Where a partition's aggregator sits, and who else was considered.
struct AggregatorPlace {
    int node = 0;
    std::size_t tier = 0;
    double score = 0;
    Cost cost;
    std::vector<Bid> rivals;  ///< the next best, by score
};

/// Fails if the buffers fit nowhere, with the sizes.
core::Result<std::vector<AggregatorPlace>> assign(Election const& election, Bids const& bids);

/// What to say of aggregators on another tier than the fastest because that has no room.
std::vector<std::string> notes_on(Election const& election, std::vector<AggregatorPlace> const& aggregator_places);

/// What assign() makes small: every aggregator's score, with its node's surcharges.
double total_score(Election const& election, std::vector<AggregatorPlace> const& aggregator_places);

}  // namespace tapioca::plan
