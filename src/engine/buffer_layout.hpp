// BufferLayout: where the buffers, slots and landing places of a route lie in a node's shared memory and on its tiers.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/exchange.hpp"
#include "plan/plan.hpp"

namespace tapioca::engine {

/// If the aggregator of a partition is on this node, the partition's buffers are here, in memory or on another tier,
/// and the landing places for its feeders' messages are in memory. If the aggregator is on another node and this node
/// feeds the partition, there are slots instead, one per buffer, in which the node's ranks gather what is to be sent.
class BufferLayout {
public:
    BufferLayout(plan::Route const& route, int node);

    /// Bytes of the segments; the same on every node, so that all nodes come to the same decision about whether the
    /// memory suffices.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Bytes of each node on each of the machine's tiers other than ordinary memory; empty if none is used.
    using OnTier = std::vector<std::uint64_t>;
    [[nodiscard]] std::vector<OnTier> const& tiers() const { return tiers_; }
    [[nodiscard]] std::uint64_t map_bytes() const { return map_bytes_; }
    /// How many partitions the exchange has counters for, and how many buffers of each.
    [[nodiscard]] Exchange::Lanes lanes() const
    {
        return {static_cast<std::size_t>(route_->aggregators), static_cast<std::size_t>(route_->buffers)};
    }

    [[nodiscard]] bool is_home(std::size_t partition) const { return map_at_[partition] != nowhere; }
    /// The tier that holds a partition's buffers, counted from 1; 0: ordinary memory.
    [[nodiscard]] std::size_t area(std::size_t partition) const { return route_->area(partition); }
    /// Offset in that area of the aggregator's node.
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
        int rank;                  ///< the rank that sends for the node
        std::uint64_t landing[2];  ///< in the memory of the aggregator's node: places for two messages
    };
    /// On the aggregator's node, all feeders in ascending order. On other nodes only this node, if it is a feeder, to
    /// save memory where there are many nodes.
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
