// The path from nodes to the file system: its gateways, their distances, and the data that passes each.
#pragma once

#include <span>
#include <vector>

#include "machine/machine.hpp"

namespace tapioca::machine {

/// Per node: its gateway, which is the nearest of `gateways.nodes`, of its own block if there are blocks; among equally
/// near ones, the one that fewer nodes use. Counted from 0. Empty if a block has no gateway.
std::vector<int> gateways_of(Topology const& topology, Gateways const& gateways);
/// Per node: the distance to its gateway, plus the link from there. @pre gateways.through is set
std::vector<int> gateway_hops(Topology const& topology, Gateways const& gateways);

/// IONodesPerFile: the gateways, counted from 0, that lead to the servers of a file that is striped over the first
/// `servers` servers; 0: all servers. All gateways if it is not known which lead where.
std::vector<int> io_nodes(Gateways const& gateways, int servers);
/// DistanceToIONode: links from a node to a given gateway, plus the link from there.
int io_distance(Machine const& machine, int node, int gateway);

/// The data that passes the gateways when nodes exchange data with a file.
struct Passage {
    double most_bytes = 0;        ///< through one gateway
    double most_block_bytes = 0;  ///< through those of one block
    int used = 0;                 ///< number of gateways that are used
    double seconds = 0;           ///< time that the busiest gateway or block needs
};
/// `bytes`: by the machine's nodes, what each exchanges with a file on `servers` servers (0: unknown). If only
/// distances are known, every node has its own path. Nothing if the gateways are unknown.
Passage passage(Machine const& machine, std::span<double const> bytes, int servers);

}  // namespace tapioca::machine
