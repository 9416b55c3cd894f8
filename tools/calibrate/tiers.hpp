// Tiers: how fast one process copies into and out of each of a node's tiers.
#pragma once

#include <string>
#include <vector>

#include "crew.hpp"
#include "engine/discovered_machine.hpp"

namespace calibrate {

/// The machine as found, with the tiers named in `wishes`, which every node must have. Collective.
tapioca::core::Result<tapioca::engine::DiscoveredMachine> with_tiers(Crew const& crew,
                                                                     tapioca::engine::DiscoveredMachine found,
                                                                     std::vector<std::string> const& wishes);

struct TierFigures {
    int nodes = 0;  ///< nodes on which it was measured; 0: `why` says why it was not
    double latency_s = 0;
    double write_bandwidth = 0, read_bandwidth = 0;
    std::string why = {};
};

/// The figures of each of the machine's tiers, measured on a few of the nodes that have it, one after the other.
/// Collective.
std::vector<TierFigures> measure_tiers(Crew const& crew, tapioca::engine::DiscoveredMachine const& around);

}  // namespace calibrate
