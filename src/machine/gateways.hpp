// The way from nodes to the file system.
#pragma once

#include <vector>

#include "machine/machine.hpp"

namespace tapioca::machine {

/// Per node: the distance to the nearest of `gateways.nodes`, of its own block if there are blocks, and the link from
/// there. Empty if a block has none.
std::vector<int> gateway_hops(Topology const& topology, Gateways const& gateways);

}  // namespace tapioca::machine
