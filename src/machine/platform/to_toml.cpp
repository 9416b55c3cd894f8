// Machines as platform files.
#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "machine/machine.hpp"
#include "machine/platform/figures.hpp"
#include "machine/platform/gateways.hpp"

namespace tapioca::machine {

namespace {

std::string toml_string(std::string_view text)
{
    std::string result = "\"";
    for (char const c : text) {
        if (c == '"' || c == '\\')
            result += fmt::format("\\{}", c);
        else if (static_cast<unsigned char>(c) < ' ' || c == 0x7F)
            result += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        else
            result += c;
    }
    return result + '"';
}

std::string string_list(std::vector<std::string> const& texts)
{
    std::string result = "[";
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) result += i % 8 == 0 ? ",\n    " : ", ";
        result += toml_string(texts[i]);
    }
    return result + ']';
}

/// The switches below the one that `first` to `last` share, nodes in the order of their coordinates, as nested lists.
std::string nested(Machine const& machine, std::vector<int> const& order, std::size_t first, std::size_t last,
                   std::size_t depth)
{
    auto const& topology = *machine.topology;
    bool const leaf = depth + 1 == topology.dimensions().size();
    std::vector<std::string> children;
    for (auto begin = first; begin < last;) {
        auto const child = topology.coordinates(order[begin])[depth];
        auto end = begin;
        while (end < last && topology.coordinates(order[end])[depth] == child) ++end;
        if (!leaf)
            children.push_back(nested(machine, order, begin, end, depth + 1));
        else
            children.push_back(machine.hosts.empty() ? fmt::format("{}", order[begin])
                                                     : toml_string(machine.hosts[order[begin]]));
        begin = end;
    }
    return fmt::format("[{}]", fmt::join(children, leaf ? ", " : ",\n    "));
}

std::string tree_text(Machine const& machine)
{
    auto const& topology = *machine.topology;
    auto sizes = topology.dimensions();
    std::vector<int> order;
    bool regular = true;
    for (int node = 0; node < topology.nodes(); ++node) {
        order.push_back(node);
        auto const at = topology.coordinates(node);
        int place = 0;
        for (std::size_t d = 0; d < sizes.size(); ++d) place = place * sizes[d] + at[d];
        regular = regular && place == node;
    }
    std::int64_t product = 1;
    for (int const size : sizes) product *= size;
    if (regular && product == topology.nodes()) {
        std::reverse(sizes.begin(), sizes.end());
        return fmt::format("arity = [{}]\n", fmt::join(sizes, ", "));
    }
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return topology.coordinates(a) < topology.coordinates(b); });
    return fmt::format("switches = {}\n", nested(machine, order, 0, order.size(), 0));
}

std::string topology_text(Machine const& machine)
{
    auto const& topology = *machine.topology;
    auto const sizes = topology.dimensions();
    auto text = fmt::format("\n[topology]\nkind = \"{}\"\nnodes = {}\n", topology.kind(), topology.nodes());
    if (topology.kind() == "torus") text += fmt::format("dimensions = [{}]\n", fmt::join(sizes, ", "));
    if (topology.kind() == "dragonfly")
        text += fmt::format("groups = {}\nrows = {}\ncolumns = {}\nnodes_per_router = {}\n", sizes[0], sizes[1],
                            sizes[2], sizes[3]);
    if (topology.kind() == "fat_tree") text += tree_text(machine);
    if (topology.kind() == "matrix") {
        text += "distances = [\n";
        for (int from = 0; from < topology.nodes(); ++from) {
            std::vector<int> row;
            for (int to = 0; to < topology.nodes(); ++to) row.push_back(topology.distance(from, to));
            text += fmt::format("    [{}],\n", fmt::join(row, ", "));
        }
        text += "]\n";
    }
    for (auto const& level : topology.levels())
        text += fmt::format("\n[[topology.level]]\nname = {}\nlatency = {}\nbandwidth = {}\n", toml_string(level.name),
                            latency_value(level.latency_s), bandwidth_value(level.bandwidth));
    return text;
}

std::string gateways_text(Machine const& machine)
{
    auto const& gateways = machine.gateways;
    if (gateways.hops.empty()) return {};
    std::string text = "\n[gateways]\n";
    if (!gateways.nodes.empty()) text += fmt::format("nodes = [{}]\n", fmt::join(gateways.nodes, ", "));
    if (gateways.block != 0) text += fmt::format("block = {}\n", gateways.block);
    if (gateways.nodes.empty() || gateways.hops != gateway_hops(*machine.topology, gateways))
        text += fmt::format("hops = [{}]\n", fmt::join(gateways.hops, ", "));
    return text + fmt::format("latency = {}\nbandwidth = {}\n", latency_value(gateways.link.latency_s),
                              bandwidth_value(gateways.link.bandwidth));
}

/// Figures that are 0 are not known.
std::string tier_text(TierTraits const& tier)
{
    constexpr char const* persistencies[] = {"none", "job", "permanent"};
    constexpr char const* origins[] = {"assumed", "hwloc", "measured", "platform"};
    auto text = fmt::format("\n[[tier]]\nname = {}\nkind = {}\n", toml_string(tier.name), toml_string(tier.kind));
    if (!tier.place.empty() || tier.name.find(':') != std::string::npos)  // else it would be what is behind the colon
        text += fmt::format("place = {}\n", toml_string(tier.place));
    if (tier.latency_s.value > 0) text += fmt::format("latency = {}\n", latency_value(tier.latency_s.value));
    if (tier.write_bandwidth.value > 0)
        text += fmt::format("write_bandwidth = {}\n", bandwidth_value(tier.write_bandwidth.value));
    if (tier.read_bandwidth.value > 0)
        text += fmt::format("read_bandwidth = {}\n", bandwidth_value(tier.read_bandwidth.value));
    if (tier.capacity_bytes.value >= 1)
        text += fmt::format("capacity = {}\n", bytes_value(static_cast<std::uint64_t>(tier.capacity_bytes.value)));
    text += fmt::format("persistency = \"{}\"\n", persistencies[static_cast<int>(tier.persistency)]);
    if (tier.write_bandwidth.origin != Origin::platform)
        text += fmt::format("origin = \"{}\"\n", origins[static_cast<int>(tier.write_bandwidth.origin)]);
    return text;
}

/// What differs from the file system's profile.
std::string storage_text(Storage const& storage)
{
    auto const profile = storage_profile(storage.name);
    auto text = fmt::format("\n[storage]\ntype = {}\n", toml_string(storage.name));
    if (storage.block_bytes != profile.block_bytes)
        text += fmt::format("block = {}\n", bytes_value(static_cast<std::uint64_t>(storage.block_bytes)));
    if (storage.stripe_bytes != 0)
        text += fmt::format("stripe = {}\n", bytes_value(static_cast<std::uint64_t>(storage.stripe_bytes)));
    if (storage.stripe_count != 0) text += fmt::format("stripe_count = {}\n", storage.stripe_count);
    if (storage.write_streams != profile.write_streams)
        text += fmt::format("write_streams = {}\n", storage.write_streams);
    if (storage.read_streams != profile.read_streams) text += fmt::format("read_streams = {}\n", storage.read_streams);
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
    auto text = fmt::format("name = {}\n", toml_string(machine.name));
    if (!machine.hosts.empty()) text += fmt::format("hosts = {}\n", string_list(machine.hosts));
    if (machine.cores != 0) text += fmt::format("\n[node]\ncores = {}\n", machine.cores);
    text += topology_text(machine) + gateways_text(machine);
    for (auto const& tier : machine.tiers) text += tier_text(tier);
    if (machine.storage) text += storage_text(*machine.storage);
    if (!machine.settings.empty()) text += "\n[settings]\n";
    for (auto const& [name, value] : machine.settings)
        text += fmt::format("{} = {}\n", toml_string(name), toml_string(value));
    return text;
}

}  // namespace tapioca::machine
