#include "machine/platform/gateways.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "core/index.hpp"

namespace tapioca::machine {

namespace {

using core::index;

constexpr std::int64_t most_distances = 100'000'000;

/// Bytes by gateway. If it is known which gateways lead to which server, a server's data uses them in turn; otherwise a
/// node's data passes its own gateway.
std::vector<double> by_gateway(Gateways const& gateways, std::span<double const> bytes, int servers)
{
    std::vector<double> loads(gateways.nodes.size(), 0);
    if (gateways.servers.empty()) {
        for (std::size_t node = 0; node < bytes.size(); ++node) loads[index(gateways.through[node])] += bytes[node];
        return loads;
    }
    auto const all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    auto const known = gateways.servers.size();
    auto const count = servers > 0 ? std::min(index(servers), known) : known;
    for (std::size_t server = 0; server < count; ++server)
        for (int const gateway : gateways.servers[server])
            loads[index(gateway)] +=
                all / static_cast<double>(count) / static_cast<double>(gateways.servers[server].size());
    return loads;
}

}  // namespace

std::vector<int> gateways_of(Topology const& topology, Gateways const& gateways)
{
    int const nodes = topology.nodes(), block = gateways.block == 0 ? nodes : gateways.block;
    std::vector<std::vector<int>> of_block(index(nodes / block));
    for (std::size_t i = 0; i < gateways.nodes.size(); ++i)
        of_block[index(gateways.nodes[i] / block)].push_back(static_cast<int>(i));
    std::vector<int> through(index(nodes), -1);
    std::vector<int> served(gateways.nodes.size(), 0);
    auto const serve = [&](int node, int gateway) {
        through[index(node)] = gateway;
        ++served[index(gateway)];
    };
    std::vector<std::pair<int, std::vector<int>>> open;  // nodes with several equally near gateways
    for (int node = 0; node < nodes; ++node) {
        auto const& choice = of_block[index(node / block)];
        if (choice.empty()) return {};
        if (static_cast<std::int64_t>(nodes) * static_cast<std::int64_t>(choice.size()) > most_distances) {
            serve(node, choice[index(node % block) * choice.size() / index(block)]);  // too large to compare all
            continue;
        }
        std::vector<int> nearest;
        int least = std::numeric_limits<int>::max();
        for (int const gateway : choice) {
            auto const distance = topology.distance(node, gateways.nodes[index(gateway)]);
            if (distance < least) nearest.clear();
            least = std::min(least, distance);
            if (distance == least) nearest.push_back(gateway);
        }
        if (nearest.size() == 1)
            serve(node, nearest[0]);
        else
            open.emplace_back(node, std::move(nearest));
    }
    for (auto const& [node, nearest] : open)
        serve(node, *std::min_element(nearest.begin(), nearest.end(),
                                      [&](int a, int b) { return served[index(a)] < served[index(b)]; }));
    return through;
}

std::vector<int> gateway_hops(Topology const& topology, Gateways const& gateways)
{
    std::vector<int> hops;
    for (std::size_t node = 0; node < gateways.through.size(); ++node)
        hops.push_back(1 + topology.distance(static_cast<int>(node), gateways.nodes[index(gateways.through[node])]));
    return hops;
}

std::vector<int> io_nodes(Gateways const& gateways, int servers)
{
    std::set<int> all;
    auto const known = gateways.servers.size();
    auto const count = servers > 0 ? std::min(index(servers), known) : known;
    for (std::size_t server = 0; server < count; ++server)
        all.insert(gateways.servers[server].begin(), gateways.servers[server].end());
    if (known == 0)
        for (std::size_t i = 0; i < gateways.nodes.size(); ++i) all.insert(static_cast<int>(i));
    return {all.begin(), all.end()};
}

int io_distance(Machine const& machine, int node, int gateway)
{
    return 1 + machine.topology->distance(node, machine.gateways.nodes[index(gateway)]);
}

Passage passage(Machine const& machine, std::span<double const> bytes, int servers)
{
    auto const& gateways = machine.gateways;
    Passage result;
    if (gateways.hops.empty()) return result;
    bool const own_way = gateways.nodes.empty();
    auto const loads = own_way ? std::vector<double>(bytes.begin(), bytes.end()) : by_gateway(gateways, bytes, servers);
    std::vector<double> blocks;
    for (std::size_t i = 0; i < loads.size(); ++i) {
        result.most_bytes = std::max(result.most_bytes, loads[i]);
        result.used += loads[i] > 0 ? 1 : 0;
        auto const block = gateways.block > 0 && !own_way ? index(gateways.nodes[i] / gateways.block) : 0;
        if (block >= blocks.size()) blocks.resize(block + 1, 0);
        blocks[block] += loads[i];
    }
    if (!blocks.empty()) result.most_block_bytes = *std::max_element(blocks.begin(), blocks.end());
    result.seconds = result.most_bytes / gateways.link.bandwidth;
    if (gateways.block_bandwidth > 0)
        result.seconds = std::max(result.seconds, result.most_block_bytes / gateways.block_bandwidth);
    return result;
}

}  // namespace tapioca::machine
