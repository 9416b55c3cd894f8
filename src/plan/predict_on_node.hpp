// Predictions: how long a step takes by each way. Pure functions of what a node's ranks have to move.
#pragma once

#include "plan/plan.hpp"

namespace tapioca::plan {

/// What the ranks of one node have to move in a step.
struct Load {
    std::uint64_t bytes = 0;
    std::uint64_t pieces = 0;
    std::uint64_t most_bytes = 0;   ///< of one rank
    std::uint64_t most_pieces = 0;  ///< of one rank
    std::uint64_t ranks = 1;        ///< with data
};
/// That of the busiest node, as far as the summary of the pattern tells: as if all nodes had the same.
Load load_of(Job const& job);

inline constexpr double most_shared_read_bw = 8e9;  ///< all readers of a node's common buffers together

/// How much slower a rank's own work gets when the ranks of a node outnumber its cores.
double crowding(Job const& job, Load const& load);
/// What the busiest rank copies into or out of shared buffers.
double copy_seconds(Job const& job, Load const& load);
/// Bytes that readers of common buffers would read: all of the range or, where that has large gaps, the buffers' worth
/// around each slice that is touched.
double read_volume(Job const& job, int readers);

/// Populating pays only where enough writers do it at once, and all of a round is written.
bool populates(Job const& job, int writers);
/// True if the range of the pattern has large gaps.
bool sparse(Job const& job);

/// Seconds on one node, without what tiers add; plan/across.hpp has those of several.
double aggregated_write_seconds(Job const& job, int writers);
double aggregated_read_seconds(Job const& job, int readers);
double direct_write_seconds(Job const& job);
double direct_read_seconds(Job const& job);

}  // namespace tapioca::plan
