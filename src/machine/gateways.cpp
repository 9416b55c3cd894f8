#include "machine/gateways.hpp"

#include <algorithm>
#include <limits>

namespace tapioca::machine {

std::vector<int> gateway_hops(Topology const& topology, Gateways const& gateways)
{
    int const nodes = topology.nodes(), block = gateways.block == 0 ? nodes : gateways.block;
    if (block == nodes) {
        if (gateways.nodes.empty()) return {};
        auto hops = topology.nearest(gateways.nodes);
        for (int& hop : hops) ++hop;
        return hops;
    }
    std::vector<std::vector<int>> of_block(static_cast<std::size_t>(nodes / block));
    for (int const node : gateways.nodes) of_block[node / block].push_back(node);
    std::vector<int> hops(static_cast<std::size_t>(nodes), std::numeric_limits<int>::max());
    for (int node = 0; node < nodes; ++node) {
        if (of_block[node / block].empty()) return {};
        for (int const gateway : of_block[node / block])
            hops[node] = std::min(hops[node], topology.distance(node, gateway) + 1);
    }
    return hops;
}

}  // namespace tapioca::machine
