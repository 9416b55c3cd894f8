// BufferLayout: where things lie in a node's shared memory, and on its tiers, while it runs a route.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/exchange.hpp"
#include "plan/plan.hpp"

namespace tapioca::engine {

/// A partition whose aggregator is on this node has its buffers here, in memory or on another tier, and in memory the
/// landing places of its feeders' messages. A partition whose aggregator is elsewhere, and which this node feeds, has
/// slots: one a buffer, where the node's ranks gather what is to be sent.
class BufferLayout {
public:
    BufferLayout(plan::Route const& route, int node);

    /// Bytes of the segments; the same on every node, so that all decide alike whether there is enough.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Bytes of each node on each of the machine's tiers other than ordinary memory; empty if none is used.
    using OnTier = std::vector<std::uint64_t>;
    [[nodiscard]] std::vector<OnTier> const& tiers() const { return tiers_; }
    [[nodiscard]] std::uint64_t map_bytes() const { return map_bytes_; }
    /// Partitions, and buffers of each, that the exchange counts for.
    [[nodiscard]] Exchange::Lanes lanes() const
    {
        return {static_cast<std::size_t>(route_->aggregators), static_cast<std::size_t>(route_->buffers)};
    }

    [[nodiscard]] bool is_home(std::size_t partition) const { return map_at_[partition] != nowhere; }
    /// The tier that holds a partition's buffers, counted from 1; 0: ordinary memory.
    [[nodiscard]] std::size_t area(std::size_t partition) const { return route_->area(partition); }
    /// In that area of the aggregator's node.
    [[nodiscard]] std::uint64_t buffer(std::size_t partition, std::size_t buffer) const
    {
        return home_at_[partition] + buffer * round_bytes_;
    }
    [[nodiscard]] std::uint64_t map(std::size_t partition, std::size_t buffer) const
    {
        return map_at_[partition] + buffer * map_step_;
    }
    [[nodiscard]] std::uint64_t slot(std::size_t partition, std::size_t buffer) const
    {
        return slot_at_[partition] + buffer * slot_step_;
    }
    /// A node that feeds a partition.
    struct Feeder {
        int node;
        int rank;                  ///< that sends for it
        std::uint64_t landing[2];  ///< in the memory of the aggregator's node: places for two messages
    };
    /// All of them on the aggregator's node, ascending; elsewhere this node, if it is one. No more, as nodes are many.
    [[nodiscard]] std::vector<Feeder> const& feeders(std::size_t partition) const { return feeders_[partition]; }

private:
    static constexpr std::uint64_t nowhere = UINT64_MAX;

    plan::Route const* route_;
    std::uint64_t round_bytes_;
    std::uint64_t map_step_;
    std::uint64_t slot_step_ = 0;
    std::vector<std::uint64_t> home_at_;
    std::vector<std::vector<Feeder>> feeders_;
    std::vector<std::uint64_t> slot_at_;
    std::vector<std::uint64_t> map_at_;
    std::uint64_t bytes_ = 0;
    std::vector<OnTier> tiers_;
    std::uint64_t map_bytes_ = 0;
};

}  // namespace tapioca::engine
