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
/// That of the busiest node, as far as the summary of the pattern tells.
Load load_of(Job const& job);

/// Populating pays only where enough writers do it at once, and all of a round is written.
bool populates(Job const& job, int writers);
/// True if the range of the pattern has large gaps.
bool sparse(Job const& job);

/// Seconds, without what the network and the tiers add.
double aggregated_write_seconds(Job const& job, int writers);
double aggregated_read_seconds(Job const& job, int readers);
double direct_write_seconds(Job const& job);
double direct_read_seconds(Job const& job);

}  // namespace tapioca::plan
