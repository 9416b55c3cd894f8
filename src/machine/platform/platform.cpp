// Platform files. Specified in docs/platforms.md; change both together.
#include <algorithm>
#include <bit>
#include <cctype>
#include <filesystem>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "machine/machine.hpp"
#include "machine/platform/gateways.hpp"
#include "machine/platform/toml_table.hpp"
#include "machine/tier/kinds.hpp"
#include "machine/topology/kind.hpp"

namespace tapioca::machine {

namespace {

std::vector<std::string> read_hosts(TomlTable const& file)
{
    std::vector<std::string> hosts;
    auto const add = [&](toml::node const& node) {
        auto const* const text = node.as_string();
        if (text == nullptr) file.refuse(node, "hosts", "must be a host list such as \"n[0-7]\", or several");
        auto names = expand_hosts(text->get());
        if (!names) file.refuse(node, "hosts", "has a bad " + names.error().text);
        std::move(names->begin(), names->end(), std::back_inserter(hosts));
        if (hosts.size() > most_nodes) file.refuse(node, "hosts", fmt::format("has more than {} names", most_nodes));
    };
    if (auto const* const node = file.table().get("hosts")) {
        if (auto const* const list = node->as_array())
            for (auto const& element : *list) add(element);
        else
            add(*node);
    }
    std::set<std::string_view> seen;
    for (auto const& host : hosts)
        if (!seen.insert(host).second) file.refuse("hosts", fmt::format("has '{}' twice", host));
    return hosts;
}

/// Reads which gateways lead to which server, for IONodesPerFile once the file's servers are known.
void read_servers(TomlTable const& section, Gateways& gateways)
{
    if (!section.has("servers")) return;
    if (gateways.block != 0) section.refuse("servers", "cannot be given with gateways.block");
    if (gateways.nodes.empty()) section.refuse("servers", "needs gateways.nodes");
    gateways.servers = *section.matrix("servers", 0, most_nodes - 1);
    if (gateways.servers.empty()) section.refuse("servers", "is empty");
    for (auto& server : gateways.servers) {
        if (server.empty()) section.refuse("servers", "has a server without a gateway");
        for (int& node : server) {
            auto const at = std::lower_bound(gateways.nodes.begin(), gateways.nodes.end(), node);
            if (at == gateways.nodes.end() || *at != node)
                section.refuse("servers", fmt::format("names node {}, which is none of gateways.nodes", node));
            node = static_cast<int>(at - gateways.nodes.begin());
        }
    }
}

Gateways read_gateways(TomlTable const& section, Topology const& topology)
{
    section.only({"nodes", "block", "per_block", "servers", "hops", "latency", "bandwidth", "block_bandwidth"});
    int const nodes = topology.nodes();
    Gateways gateways;
    gateways.link = topology.levels().back();
    gateways.link.name = "gateway";
    gateways.link.latency_s = section.latency("latency").value_or(gateways.link.latency_s);
    gateways.link.bandwidth = section.bandwidth("bandwidth").value_or(gateways.link.bandwidth);

    gateways.block_bandwidth = section.bandwidth("block_bandwidth").value_or(0);

    if (section.has("nodes") && section.has("per_block"))
        section.refuse("per_block", "cannot be given with gateways.nodes");
    gateways.nodes = section.integers("nodes", 0, nodes - 1).value_or(std::vector<int>{});
    gateways.block = section.integer("block", 1, nodes).value_or(0);
    if (gateways.block != 0 && nodes % gateways.block != 0)
        section.refuse("block", fmt::format("of {} does not divide {} nodes", gateways.block, nodes));
    if (section.has("per_block")) {
        if (gateways.block == 0) section.refuse("per_block", "needs gateways.block");
        auto const offsets = *section.integers("per_block", 0, gateways.block - 1);
        for (int first = 0; first < nodes; first += gateways.block)
            for (int const offset : offsets) gateways.nodes.push_back(first + offset);
    }
    std::sort(gateways.nodes.begin(), gateways.nodes.end());
    gateways.nodes.erase(std::unique(gateways.nodes.begin(), gateways.nodes.end()), gateways.nodes.end());

    if (auto hops = section.integers("hops", 0, most_hops)) {
        if (hops->size() != static_cast<std::size_t>(nodes))
            section.refuse("hops", fmt::format("has {} numbers for {} nodes", hops->size(), nodes));
        gateways.hops = std::move(*hops);
    } else if (gateways.nodes.empty()) {
        section.refuse("nodes", "is empty or missing, and so are per_block and hops");
    }
    if (gateways.block_bandwidth > 0 && (gateways.block == 0 || gateways.nodes.empty()))
        section.refuse("block_bandwidth", "needs gateways.block, and nodes or per_block");
    read_servers(section, gateways);
    if (gateways.nodes.empty()) return gateways;
    gateways.through = gateways_of(topology, gateways);
    if (gateways.through.empty()) section.refuse("nodes", "leaves a block without a gateway");
    if (gateways.hops.empty()) gateways.hops = gateway_hops(topology, gateways);
    return gateways;
}

TomlTable::Keys kind_names()
{
    TomlTable::Keys names;
    for (auto const* const kind : tier_kinds()) names.push_back(kind->name);
    return names;
}

/// "dram, numa or ssd"
std::string any_kind()
{
    auto const names = kind_names();
    return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

/// The kind of a tier with this name if the file does not give one; empty: the file must give it.
std::string usual_kind(std::string_view tier)
{
    for (auto const* const kind : tier_kinds())
        if (kind->name == tier ||
            std::find(kind->described_as.begin(), kind->described_as.end(), tier) != kind->described_as.end())
            return std::string(kind->name);
    return {};
}

TierTraits read_tier(TomlTable const& section)
{
    section.only({"name", "kind", "place", "directory", "latency", "bandwidth", "write_bandwidth", "read_bandwidth",
                  "capacity", "persistency", "origin"});
    TierTraits tier;
    tier.name = section.text("name").value_or("");
    // As in settings: the case of a name does not matter, that of a place does.
    std::transform(tier.name.begin(), std::find(tier.name.begin(), tier.name.end(), ':'), tier.name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (tier.name.empty()) section.refuse("name", "is missing");
    auto const stem = tier.name.substr(0, tier.name.find(':'));
    tier.kind = section.has("kind") ? *section.text("kind") : usual_kind(stem);
    if (tier.kind.empty() && !section.has("kind"))
        section.refuse("kind", fmt::format("is missing: tier '{}' may be {}", tier.name, any_kind()));
    section.one_of("kind", tier.kind, kind_names());
    if (section.has("place") && section.has("directory")) section.refuse("directory", "is another word for tier.place");
    auto const place = section.has("place") ? section.text("place") : section.text("directory");
    tier.place = place.value_or(stem.size() < tier.name.size() ? tier.name.substr(stem.size() + 1) : "");

    tier.persistency = find_kind(tier.kind)->persistency;
    if (auto const word = section.text("persistency")) {
        section.one_of("persistency", *word, {core::persistency_names.begin(), core::persistency_names.end()});
        tier.persistency = *persistency_named(*word);
    }
    auto origin = Origin::platform;
    if (auto const word = section.text("origin")) {
        section.one_of("origin", *word, {origin_names.begin(), origin_names.end()});
        origin = *origin_named(*word);
    }
    auto const set = [&](Figure& figure, std::optional<double> value) {
        if (value) figure = {*value, origin};
    };
    set(tier.latency_s, section.latency("latency"));
    set(tier.write_bandwidth, section.bandwidth("bandwidth"));
    set(tier.read_bandwidth, section.bandwidth("bandwidth"));
    set(tier.write_bandwidth, section.bandwidth("write_bandwidth"));
    set(tier.read_bandwidth, section.bandwidth("read_bandwidth"));
    if (auto const capacity = section.bytes("capacity")) set(tier.capacity_bytes, static_cast<double>(*capacity));
    return tier;
}

std::vector<TierTraits> read_tiers(TomlTable const& file)
{
    std::vector<TierTraits> tiers;
    std::set<std::string> names;
    for (auto const& section : file.sections("tier")) {
        tiers.push_back(read_tier(section));
        if (!names.insert(tiers.back().name).second)
            section.refuse("name", fmt::format("'{}' is taken by an earlier tier", tiers.back().name));
    }
    return tiers;
}

Storage read_storage(TomlTable const& section)
{
    section.only({"type", "block", "stripe", "stripe_count", "write_streams", "read_streams", "share_nodes",
                  "write_bandwidth", "read_bandwidth", "remote"});
    if (!section.has("type")) section.refuse("type", "is missing");
    section.one_of("type", *section.text("type"), storage_names());
    auto storage = storage_profile(*section.text("type"));
    auto const block = section.bytes("block").value_or(static_cast<std::uint64_t>(storage.block_bytes));
    if (block < 512 || block > core::GiB || !std::has_single_bit(block))
        section.refuse("block", "must be a power of two from 512 bytes to 1 GiB");
    storage.block_bytes = static_cast<std::int64_t>(block);
    storage.stripe_bytes = static_cast<std::int64_t>(section.bytes("stripe").value_or(0));
    storage.stripe_count = section.integer("stripe_count", 1, most_nodes).value_or(0);
    storage.write_streams = section.integer("write_streams", 1, most_nodes).value_or(storage.write_streams);
    storage.read_streams = section.integer("read_streams", 1, most_nodes).value_or(storage.read_streams);
    if (auto const bandwidth = section.bandwidth("write_bandwidth")) {
        storage.write_bw = *bandwidth;
        storage.parallel_write_bw = storage.contended_write_bw = *bandwidth * storage.write_streams;
    }
    storage.read_bw = section.bandwidth("read_bandwidth").value_or(storage.read_bw);
    storage.remote = section.flag("remote").value_or(storage.remote);
    storage.share_nodes = section.integer("share_nodes", 1, most_nodes).value_or(0);
    storage.each_node = storage.remote;
    for (auto const* const key : {"write_streams", "read_streams", "write_bandwidth", "read_bandwidth"})
        if (section.has(key)) storage.each_node = false;
    return storage;
}

std::vector<std::pair<std::string, std::string>> read_settings(TomlTable const& section)
{
    std::vector<std::pair<std::string, std::string>> settings;
    for (auto const& [key, value] : section.table()) {
        std::string text;
        if (value.is_string())
            text = value.as_string()->get();
        else if (value.is_integer())
            text = fmt::format("{}", value.as_integer()->get());
        else if (value.is_boolean())
            text = value.as_boolean()->get() ? "true" : "false";
        else
            section.refuse(key.str(), "must be a string, a whole number, true or false");
        settings.emplace_back(key.str(), text);
    }
    return settings;
}

Machine read_machine(TomlTable const& file, std::string const& where)
{
    file.only({"name", "hosts", "node", "topology", "gateways", "tier", "storage", "settings"});
    Machine machine;
    machine.name = file.text("name").value_or(std::filesystem::path(where).stem().string());
    Draft draft{read_hosts(file), false};
    auto const topology = file.section("topology");
    if (!topology) file.refuse("topology", "is missing");
    machine.topology = read_topology(*topology, draft);
    machine.hosts = std::move(draft.hosts);
    if (auto const names = machine.hosts.size();
        names != 0 && names != static_cast<std::size_t>(machine.topology->nodes()))
        file.refuse("hosts", fmt::format("has {} names, the topology {} nodes", names, machine.topology->nodes()));
    if (auto const gateways = file.section("gateways")) machine.gateways = read_gateways(*gateways, *machine.topology);
    if (auto const node = file.section("node"))
        machine.cores = node->only({"cores"}).integer("cores", 1, most_nodes).value_or(0);
    machine.tiers = read_tiers(file);
    if (auto const storage = file.section("storage")) machine.storage = read_storage(*storage);
    if (auto const settings = file.section("settings")) machine.settings = read_settings(*settings);
    machine.links_assumed = draft.assumed;
    machine.origin =
        fmt::format("platform file {}{}", where, draft.assumed ? "; latency or bandwidth of links assumed" : "");
    return machine;
}

constexpr int most_dots = 1'000;

/// A key of a million parts would become a million nested tables, and overflow the stack when they are destroyed.
/// Returns the number of the first line with such a key, or 0. Lists of numbers and of hosts have commas.
int line_of_endless_key(std::string_view text)
{
    int line = 1, dots = 0;
    for (char const c : text) {
        if (c == '\n') ++line;
        if (c == '\n' || c == ',') dots = 0;
        if (c == '.' && ++dots > most_dots) return line;
    }
    return 0;
}

core::Result<Machine> refused(std::string text)
{
    // Keys and values may contain anything, but a message is one line.
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
    return core::fail(Errc::setting, std::move(text));
}

}  // namespace

core::Result<Machine> parse_platform(std::string_view text, std::string const& where)
{
    if (int const line = line_of_endless_key(text))
        return refused(fmt::format("{}:{}:1: more than {} dots without a comma between them", where, line, most_dots));
    try {
        auto const table = toml::parse(text);
        return read_machine(TomlTable(where, table, ""), where);
    } catch (toml::parse_error const& error) {
        auto const at = error.source().begin;
        return refused(fmt::format("{}:{}:{}: {}", where, at.line, at.column, error.description()));
    } catch (Refused const& refusal) {
        return refused(refusal.text);
    }
}

}  // namespace tapioca::machine
