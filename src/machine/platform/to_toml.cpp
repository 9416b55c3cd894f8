// Writes machines as platform files.
#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "machine/machine.hpp"
#include "machine/platform/figures.hpp"
#include "machine/platform/gateways.hpp"

namespace tapioca::machine {

namespace {

std::string string_list(std::vector<std::string> const& texts)
{
    std::string result = "[";
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) result += i % 8 == 0 ? ",\n    " : ", ";
        result += text_value(texts[i]);
    }
    return result + ']';
}

std::string topology_text(Machine const& machine)
{
    auto const& topology = *machine.topology;
    auto text = fmt::format("\n[topology]\nkind = \"{}\"\nnodes = {}\n", topology.kind(), topology.nodes());
    text += topology.to_toml(machine.hosts);
    bool const shared = topology.has_shared_links();
    for (auto const& level : topology.levels()) {
        text += fmt::format("\n[[topology.level]]\nname = {}\nlatency = {}\nbandwidth = {}\n", text_value(level.name),
                            latency_value(level.latency_s), bandwidth_value(level.bandwidth));
        if (shared) text += fmt::format("links = {}\n", level.links);
    }
    return text;
}

std::string gateways_text(Machine const& machine)
{
    auto const& gateways = machine.gateways;
    if (gateways.hops.empty()) return {};
    std::string text = "\n[gateways]\n";
    if (!gateways.nodes.empty()) text += fmt::format("nodes = [{}]\n", fmt::join(gateways.nodes, ", "));
    if (gateways.block != 0) text += fmt::format("block = {}\n", gateways.block);
    if (!gateways.servers.empty()) {
        std::vector<std::string> servers;
        for (auto const& server : gateways.servers) {
            std::vector<int> nodes;
            for (int const gateway : server) nodes.push_back(gateways.nodes[static_cast<std::size_t>(gateway)]);
            servers.push_back(fmt::format("[{}]", fmt::join(nodes, ", ")));
        }
        text += fmt::format("servers = [{}]\n", fmt::join(servers, ", "));
    }
    if (gateways.nodes.empty() || gateways.hops != gateway_hops(*machine.topology, gateways))
        text += fmt::format("hops = [{}]\n", fmt::join(gateways.hops, ", "));
    if (gateways.block_bandwidth > 0)
        text += fmt::format("block_bandwidth = {}\n", bandwidth_value(gateways.block_bandwidth));
    return text + fmt::format("latency = {}\nbandwidth = {}\n", latency_value(gateways.link.latency_s),
                              bandwidth_value(gateways.link.bandwidth));
}

/// Figures that are 0 are unknown.
std::string tier_text(TierTraits const& tier)
{
    auto text = fmt::format("\n[[tier]]\nname = {}\nkind = {}\n", text_value(tier.name), text_value(tier.kind));
    if (!tier.place.empty() || tier.name.find(':') != std::string::npos)  // else the part after the colon counts
        text += fmt::format("place = {}\n", text_value(tier.place));
    if (tier.latency_s.value > 0) text += fmt::format("latency = {}\n", latency_value(tier.latency_s.value));
    if (tier.write_bandwidth.value > 0)
        text += fmt::format("write_bandwidth = {}\n", bandwidth_value(tier.write_bandwidth.value));
    if (tier.read_bandwidth.value > 0)
        text += fmt::format("read_bandwidth = {}\n", bandwidth_value(tier.read_bandwidth.value));
    if (tier.capacity_bytes.value >= 1)
        text += fmt::format("capacity = {}\n", bytes_value(static_cast<std::uint64_t>(tier.capacity_bytes.value)));
    text += fmt::format("persistency = \"{}\"\n", core::name(tier.persistency));
    if (tier.write_bandwidth.origin != Origin::platform)
        text += fmt::format("origin = \"{}\"\n", name(tier.write_bandwidth.origin));
    return text;
}

/// Writes what differs from the file system's profile.
std::string storage_text(Storage const& storage)
{
    auto const profile = storage_profile(storage.name);
    auto text = fmt::format("\n[storage]\ntype = {}\n", text_value(storage.name));
    if (storage.block_bytes != profile.block_bytes)
        text += fmt::format("block = {}\n", bytes_value(static_cast<std::uint64_t>(storage.block_bytes)));
    if (storage.stripe_bytes != 0)
        text += fmt::format("stripe = {}\n", bytes_value(static_cast<std::uint64_t>(storage.stripe_bytes)));
    if (storage.stripe_count != 0) text += fmt::format("stripe_count = {}\n", storage.stripe_count);
    bool const together = storage.remote && !storage.each_node;  // implied by naming the streams
    if (storage.write_streams != profile.write_streams || together)
        text += fmt::format("write_streams = {}\n", storage.write_streams);
    if (storage.read_streams != profile.read_streams) text += fmt::format("read_streams = {}\n", storage.read_streams);
    if (storage.share_nodes != 0) text += fmt::format("share_nodes = {}\n", storage.share_nodes);
    if (storage.write_bw != profile.write_bw || storage.contended_write_bw != profile.contended_write_bw)
        text += fmt::format("write_bandwidth = {}\n", bandwidth_value(storage.write_bw));
    if (storage.read_bw != profile.read_bw)
        text += fmt::format("read_bandwidth = {}\n", bandwidth_value(storage.read_bw));
    if (storage.remote != profile.remote) text += fmt::format("remote = {}\n", storage.remote);
    return text;
}

}  // namespace

std::string to_toml(Machine const& machine)
{
    auto text = fmt::format("name = {}\n", text_value(machine.name));
    if (!machine.hosts.empty()) text += fmt::format("hosts = {}\n", string_list(machine.hosts));
    if (machine.cores != 0) text += fmt::format("\n[node]\ncores = {}\n", machine.cores);
    text += topology_text(machine) + gateways_text(machine);
    for (auto const& tier : machine.tiers) text += tier_text(tier);
    if (machine.storage) text += storage_text(*machine.storage);
    if (!machine.settings.empty()) text += "\n[settings]\n";
    for (auto const& [name, value] : machine.settings)
        text += fmt::format("{} = {}\n", text_value(name), text_value(value));
    return text;
}

}  // namespace tapioca::machine
