// Predictions for one node: how long a step takes by each way. Pure functions of what a node's ranks have to move.
#pragma once

#include "plan/plan.hpp"

namespace tapioca::plan {

/// What the ranks of one node have to move in a step.
struct Load {
    std::uint64_t bytes = 0;
    std::uint64_t pieces = 0;
    std::uint64_t most_bytes = 0;   ///< of one rank
    std::uint64_t most_pieces = 0;  ///< of one rank
    std::uint64_t ranks = 1;        ///< number of ranks with data
};
/// The load of the busiest node, according to the summary of the pattern, as if all nodes had the same.
Load load_of(Job const& job);

inline constexpr double most_shared_read_bw = 8e9;  ///< of all readers of a node's shared buffers together

/// By which factor a rank's own work slows down if the ranks of a node outnumber its cores.
double crowding(Job const& job, Load const& load);
/// The time for the busiest rank's copies into or out of shared buffers.
double copy_seconds(Job const& job, Load const& load);
/// Bytes that readers with shared buffers would read: the whole range or, if it has large gaps, one buffer around each
/// slice that is touched.
double read_volume(Job const& job, int readers);

/// Populating pays only if enough writers do it at the same time, and all of a round is written.
bool populates(Job const& job, int writers);
/// True if the range of the pattern has large gaps.
bool sparse(Job const& job);

/// Seconds on one node, without the cost of tiers; those for several nodes are in plan/predict_across_nodes.hpp.
double aggregated_write_seconds(Job const& job, int writers);
double aggregated_read_seconds(Job const& job, int readers);
double direct_write_seconds(Job const& job);
double direct_read_seconds(Job const& job);

}  // namespace tapioca::plan
