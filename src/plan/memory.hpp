// What a route takes in memory, and how it is made to take no more than there may be.
#pragma once

#include "plan/plan.hpp"

namespace tapioca::plan {

/// What one process has for itself while it runs the route: the declaration, where it stands in every partition, what
/// it asked for and what is under way. An upper bound.
std::uint64_t private_bytes(Job const& job, Route const& route, bool reading);

/// What a node's ranks share in ordinary memory while they run a route that crosses nodes.
struct Shared {
    std::uint64_t segment_bytes = 0;     ///< of the fullest node, and the same on all
    std::uint64_t map_bytes = 0;         ///< likewise
    std::uint64_t counter_bytes = 0;     ///< likewise
    std::uint64_t aggregator_bytes = 0;  ///< the most that is there for one aggregator
    std::uint64_t slot_bytes = 0;        ///< the most for a rank's share of what its node sends
};
Shared shared_bytes(Route const& route, Nodes const& nodes);

/// The counters of the route's partitions that a node with so many ranks shares.
std::uint64_t counter_bytes(Route const& route, std::uint64_t ranks);

/// What a process takes for a route: for itself, and of what the ranks of its node share.
struct Taken {
    std::uint64_t own_bytes = 0;
    std::uint64_t shared_bytes = 0;
};
Taken taken(Job const& job, Route const& route, Nodes const& nodes, bool reading);

/// Gives every node room for what it sends and receives, all of a round if it can be; and makes rounds smaller, and
/// fewer of them at a time, until the route keeps the memory cap and fits into what is free. Fails if it cannot. The
/// step's other route, which takes `other`, runs in the same memory.
core::Status fit(Job const& job, Route& route, Nodes const& nodes, std::vector<Weight> const& weights, bool reading,
                 Taken const& other);

/// What a node has of ordinary memory for buffers, on the node with least; and what of it buffers of a size that nobody
/// asked for may take. UINT64_MAX if that is not known.
std::uint64_t free_of(Job const& job);
std::uint64_t room_of(Job const& job);

}  // namespace tapioca::plan
