// The way from nodes to the file system: which gateways there are on it, how far they are, and what passes each.
#pragma once

#include <span>
#include <vector>

#include "machine/machine.hpp"

namespace tapioca::machine {

/// Per node: its gateway, the nearest of `gateways.nodes`, of its own block if there are blocks; of several that are as
/// near, the one that fewer nodes have. Counted from 0. Empty if a block has none.
std::vector<int> gateways_of(Topology const& topology, Gateways const& gateways);
/// Per node: the distance to its gateway, and the link from there. @pre gateways.through is set
std::vector<int> gateway_hops(Topology const& topology, Gateways const& gateways);

/// IONodesPerFile: the gateways, counted from 0, that lead to the servers of a file whose stripes go round `servers` of
/// them, the first; all gateways if it is not known which lead where. 0: all servers.
std::vector<int> io_nodes(Gateways const& gateways, int servers);
/// DistanceToIONode: links from a node to a given gateway, and from there.
int io_distance(Machine const& machine, int node, int gateway);

/// What passes the gateways when nodes exchange data with a file.
struct Passage {
    double most_bytes = 0;        ///< through one gateway
    double most_block_bytes = 0;  ///< through those of one block
    int used = 0;                 ///< gateways that something passes
    double seconds = 0;           ///< that the busiest gateway or block needs
};
/// `bytes` are by the machine's nodes: what each exchanges with a file on `servers` servers (0: unknown). Where only
/// distances are known, every node has a way of its own. Nothing where the gateways are unknown.
Passage passage(Machine const& machine, std::span<double const> bytes, int servers);

}  // namespace tapioca::machine
