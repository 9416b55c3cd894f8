// Links: latency and bandwidth of a network, level by level, measured between a few pairs of nodes.
#pragma once

#include <vector>

#include "crew.hpp"
#include "machine/topology/topology.hpp"

namespace calibrate {

/// Two of the job's nodes, by number.
struct NodePair {
    int from = 0, to = 0;
};

/// For each level up to `most` pairs for which it is the outermost level on the path; `where` is the machine's node of
/// each of the job's nodes. Near pairs come first. Local.
std::vector<std::vector<NodePair>> choose_pairs(tapioca::machine::Topology const& topology,
                                                std::vector<int> const& where, std::size_t most);

struct LinkFigures {
    int pairs = 0;         ///< 0: nothing was measured, and the other figures are unchanged
    double latency_s = 0;  ///< of a hop
    double bandwidth = 0;
};

/// The figures of every level. Collective.
std::vector<LinkFigures> measure_links(Crew const& crew, tapioca::machine::Topology const& topology,
                                       std::vector<int> const& where);

}  // namespace calibrate
