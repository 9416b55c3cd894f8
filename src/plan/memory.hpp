// How much memory a route takes, and how it is made to fit into the memory that it may take.
#pragma once

#include "plan/plan.hpp"

namespace tapioca::plan {

/// The private memory of one process while it runs the route: the declaration, its position in every partition, what it
/// has asked for and what is under way. An upper bound.
std::uint64_t private_bytes(Job const& job, Route const& route, bool reading);

/// The ordinary memory that a node's ranks share while they run a route that crosses nodes.
struct Shared {
    std::uint64_t segment_bytes = 0;     ///< of the fullest node; the same on all nodes
    std::uint64_t map_bytes = 0;         ///< of the fullest node; the same on all nodes
    std::uint64_t counter_bytes = 0;     ///< of the fullest node; the same on all nodes
    std::uint64_t aggregator_bytes = 0;  ///< the most for one aggregator
    std::uint64_t slot_bytes = 0;        ///< the most for a rank's share of the data that its node sends
};
Shared shared_bytes(Route const& route, Nodes const& nodes);

/// Bytes of the counters of the route's partitions, which a node with this number of ranks shares.
std::uint64_t counter_bytes(Route const& route, std::uint64_t ranks);

/// The memory that a process takes for a route: its private memory, and its share of what the ranks of its node share.
struct Taken {
    std::uint64_t own_bytes = 0;
    std::uint64_t shared_bytes = 0;
};
Taken taken(Job const& job, Route const& route, Nodes const& nodes, bool reading);

/// Gives every node room for what it sends and receives, for a whole round if possible. Reduces the number of buffers
/// and the size of rounds until the route keeps the memory cap and fits into free memory. Fails if it cannot. The
/// step's other route, which takes `other`, runs in the same memory.
core::Status fit(Job const& job, Route& route, Nodes const& nodes, std::vector<Weight> const& weights, bool reading,
                 Taken const& other);

/// The ordinary memory for buffers on the node with the least; and the part of it that buffers whose size was not asked
/// for may take. UINT64_MAX if unknown.
std::uint64_t free_of(Job const& job);
std::uint64_t room_of(Job const& job);

}  // namespace tapioca::plan
