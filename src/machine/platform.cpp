// Platform files. Specified in docs/platforms.md; change both together.
#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "machine/figures.hpp"
#include "machine/gateways.hpp"
#include "machine/machine.hpp"
#include "machine/section.hpp"
#include "machine/switches.hpp"

namespace tapioca::machine {

namespace {

constexpr int most_nodes = 1'000'000, most_hops = 1'000'000;
constexpr std::size_t most_levels = 16;

/// What is known while the topology is read: `hosts` may come from a tree's switches, `assumed` says that some figure
/// was not given.
struct Draft {
    std::vector<std::string> hosts;
    bool assumed = false;
};

/// One level for each of `names`, from [[topology.level]]; the last given holds for the rest.
std::vector<Level> read_levels(Section const& topology, std::vector<std::string> const& names, Draft& draft)
{
    auto const given = topology.sections("level");
    if (given.size() > names.size())
        topology.refuse("level", fmt::format("has {} entries, {} is the most here", given.size(), names.size()));
    std::vector<Level> levels;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto level = i < given.size() || given.empty() ? assumed_level(names[i]) : levels.back();
        level.name = names[i];
        if (i < given.size()) {
            auto const& section = given[i].only({"name", "latency", "bandwidth"});
            level.name = section.text("name").value_or(names[i]);
            level.latency_s = section.latency("latency").value_or(level.latency_s);
            level.bandwidth = section.bandwidth("bandwidth").value_or(level.bandwidth);
            draft.assumed = draft.assumed || !section.has("latency") || !section.has("bandwidth");
        }
        levels.push_back(std::move(level));
    }
    draft.assumed = draft.assumed || given.empty();
    return levels;
}

/// The product of `sizes`, which must be `nodes` where that is given.
int multiply_up(Section const& topology, std::string_view key, std::vector<int> const& sizes)
{
    std::uint64_t product = 1;
    for (int const size : sizes) product = core::multiply(product, static_cast<std::uint64_t>(size));
    if (product > most_nodes) topology.refuse(key, fmt::format("multiplies up to more than {} nodes", most_nodes));
    auto const nodes = topology.integer("nodes", 1, most_nodes);
    if (nodes && static_cast<std::uint64_t>(*nodes) != product)
        topology.refuse(key, fmt::format("multiplies up to {} nodes, topology.nodes is {}", product, *nodes));
    return static_cast<int>(product);
}

using SharedTopology = std::shared_ptr<Topology const>;

SharedTopology read_flat(Section const& topology, Draft& draft)
{
    auto const nodes = topology.integer("nodes", 1, most_nodes);
    if (!nodes && draft.hosts.empty()) topology.refuse("nodes", "is missing");
    return make_flat(nodes.value_or(static_cast<int>(draft.hosts.size())), read_levels(topology, {"link"}, draft)[0]);
}

SharedTopology read_torus(Section const& topology, Draft& draft)
{
    auto sizes = topology.integers("dimensions", 1, most_nodes);
    if (!sizes || sizes->empty()) topology.refuse("dimensions", "must list the torus's sizes, such as [4, 4, 8]");
    if (sizes->size() > most_levels) topology.refuse("dimensions", fmt::format("has more than {} sizes", most_levels));
    (void)multiply_up(topology, "dimensions", *sizes);
    return make_torus(std::move(*sizes), read_levels(topology, {"link"}, draft)[0]);
}

SharedTopology read_dragonfly(Section const& topology, Draft& draft)
{
    std::vector<int> sizes;
    for (auto const* const key : {"groups", "rows", "columns", "nodes_per_router"}) {
        if (!topology.has(key)) topology.refuse(key, "is missing");
        sizes.push_back(*topology.integer(key, 1, most_nodes));
    }
    (void)multiply_up(topology, "groups", sizes);
    auto const levels = read_levels(topology, {"node", "inside", "between"}, draft);
    return make_dragonfly({sizes[0], sizes[1], sizes[2], sizes[3]}, levels[0], levels[1], levels[2]);
}

SharedTopology make_tree(Section const& topology, std::vector<std::vector<int>> switches, Draft& draft)
{
    std::vector<std::string> names;
    for (std::size_t level = 1; level <= switches.size(); ++level) names.push_back(fmt::format("level {}", level));
    auto levels = read_levels(topology, names, draft);
    return make_fat_tree(std::move(switches), std::move(levels));
}

SharedTopology read_arity(Section const& topology, Draft& draft)
{
    auto const arity = *topology.integers("arity", 1, most_nodes);
    if (arity.empty() || arity.size() > most_levels)
        topology.refuse("arity", fmt::format("must list 1 to {} numbers, such as [16, 8]", most_levels));
    int const nodes = multiply_up(topology, "arity", arity);
    std::vector<std::vector<int>> switches;
    int under = 1;
    for (int const count : arity) {
        under *= count;
        auto& level = switches.emplace_back();
        for (int node = 0; node < nodes; ++node) level.push_back(node / under);
    }
    return make_tree(topology, std::move(switches), draft);
}

/// The nodes under nested lists of host names or node numbers, in order of appearance.
struct Tree {
    std::vector<std::string> names;
    std::vector<int> numbers;
    std::vector<Path> paths;
};

void walk_tree(Section const& topology, toml::array const& list, Path const& path, Tree& tree)
{
    if (path.size() > most_levels)
        topology.refuse(list, "switches", fmt::format("is nested more than {} deep", most_levels));
    if (list.empty()) topology.refuse(list, "switches", "has a switch with nothing below it");
    int child = 0;
    for (auto const& element : list) {
        if (auto const* const below = element.as_array()) {
            auto longer = path;
            longer.push_back(child++);
            walk_tree(topology, *below, longer, tree);
        } else if (auto const* const text = element.as_string()) {
            auto names = expand_hosts(text->get());
            if (!names) topology.refuse(element, "switches", "has a bad " + names.error().text);
            std::move(names->begin(), names->end(), std::back_inserter(tree.names));
        } else if (auto const* const number = element.as_integer();
                   number != nullptr && number->get() >= 0 && number->get() < most_nodes) {
            tree.numbers.push_back(static_cast<int>(number->get()));
        } else {
            topology.refuse(element, "switches", "must hold lists, host names or node numbers");
        }
        if (!tree.names.empty() && !tree.numbers.empty())
            topology.refuse(element, "switches", "must hold either host names or node numbers");
        auto const nodes = tree.names.size() + tree.numbers.size();
        if (nodes > most_nodes) topology.refuse(element, "switches", fmt::format("has more than {} nodes", most_nodes));
        tree.paths.resize(nodes, path);
    }
}

SharedTopology read_switches(Section const& topology, Draft& draft)
{
    Tree tree;
    walk_tree(topology, *topology.array("switches"), {0}, tree);
    if (draft.hosts.empty()) draft.hosts = tree.names;
    std::map<std::string, int> numbers;
    for (auto const& host : draft.hosts) numbers.emplace(host, static_cast<int>(numbers.size()));
    for (auto const& name : tree.names) {
        auto const found = numbers.find(name);
        if (found == numbers.end()) topology.refuse("switches", fmt::format("has '{}', which is not in hosts", name));
        tree.numbers.push_back(found->second);
    }
    auto const nodes = topology.integer("nodes", 1, most_nodes);
    if (nodes && static_cast<std::size_t>(*nodes) != tree.numbers.size())
        topology.refuse("switches", fmt::format("has {} nodes, topology.nodes is {}", tree.numbers.size(), *nodes));
    std::vector<Path> paths(tree.numbers.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
        auto const node = static_cast<std::size_t>(tree.numbers[i]);
        auto const called = tree.names.empty() ? fmt::format("{}", node) : fmt::format("'{}'", tree.names[i]);
        if (node >= paths.size())
            topology.refuse("switches", fmt::format("has {} nodes, so that there is no node {}", paths.size(), called));
        if (!paths[node].empty()) topology.refuse("switches", fmt::format("has node {} twice", called));
        paths[node] = tree.paths[i];
    }
    return make_tree(topology, number_switches(std::move(paths)), draft);
}

SharedTopology read_fat_tree(Section const& topology, Draft& draft)
{
    if (topology.has("arity") == topology.has("switches"))
        topology.refuse("arity", "or topology.switches must be given, and not both");
    return topology.has("arity") ? read_arity(topology, draft) : read_switches(topology, draft);
}

SharedTopology read_matrix(Section const& topology, Draft& draft)
{
    auto distances = topology.matrix("distances", 0, most_hops);
    if (!distances || distances->empty()) topology.refuse("distances", "must be a square of hops");
    auto const& d = *distances;
    for (std::size_t a = 0; a < d.size(); ++a) {
        if (d[a].size() != d.size())
            topology.refuse("distances",
                            fmt::format("must be square: row {} has {} of {} numbers", a, d[a].size(), d.size()));
        for (std::size_t b = 0; b <= a; ++b) {
            if (a == b && d[a][b] != 0)
                topology.refuse("distances", fmt::format("must be 0 from node {} to itself", a));
            if (a != b && d[a][b] != d[b][a])
                topology.refuse("distances", fmt::format("must be symmetric: {} from node {} to {}, {} back", d[b][a],
                                                         b, a, d[a][b]));
            if (a != b && d[a][b] == 0)
                topology.refuse("distances", fmt::format("must be at least 1 between nodes {} and {}", b, a));
        }
    }
    (void)multiply_up(topology, "distances", {static_cast<int>(d.size())});
    return make_matrix(std::move(*distances), read_levels(topology, {"link"}, draft)[0]);
}

/// To add a topology, write one .cpp, one function here and one row.
struct TopologyRow {
    std::string_view kind;
    Section::Keys keys;
    SharedTopology (*read)(Section const&, Draft&);
};

std::vector<TopologyRow> const& topology_rows()
{
    static std::vector<TopologyRow> const rows = {
        {"flat", {}, &read_flat},
        {"torus", {"dimensions"}, &read_torus},
        {"dragonfly", {"groups", "rows", "columns", "nodes_per_router"}, &read_dragonfly},
        {"fat_tree", {"arity", "switches"}, &read_fat_tree},
        {"matrix", {"distances"}, &read_matrix},
    };
    return rows;
}

/// Refuses a word that is none of `words`.
void one_of(Section const& section, std::string_view key, std::string const& word, Section::Keys const& words)
{
    if (std::find(words.begin(), words.end(), word) == words.end())
        section.refuse(key, fmt::format("'{}' is unknown: did you mean '{}'? There are {}", word,
                                        core::nearest(word, words), fmt::join(words, ", ")));
}

SharedTopology read_topology(Section const& topology, Draft& draft)
{
    auto const kind = topology.text("kind");
    if (!kind) topology.refuse("kind", "is missing");
    Section::Keys kinds;
    for (auto const& row : topology_rows()) kinds.push_back(row.kind);
    one_of(topology, "kind", *kind, kinds);
    auto const row =
        std::find_if(topology_rows().begin(), topology_rows().end(), [&](auto& r) { return r.kind == *kind; });
    Section::Keys keys{"kind", "nodes", "level"};
    keys.insert(keys.end(), row->keys.begin(), row->keys.end());
    return row->read(topology.only(keys), draft);
}

std::vector<std::string> read_hosts(Section const& file)
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

Gateways read_gateways(Section const& section, Topology const& topology)
{
    section.only({"nodes", "block", "per_block", "hops", "latency", "bandwidth"});
    int const nodes = topology.nodes();
    Gateways gateways;
    gateways.link = topology.levels().back();
    gateways.link.name = "gateway";
    gateways.link.latency_s = section.latency("latency").value_or(gateways.link.latency_s);
    gateways.link.bandwidth = section.bandwidth("bandwidth").value_or(gateways.link.bandwidth);

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
    } else {
        if (gateways.nodes.empty()) section.refuse("nodes", "is empty or missing, and so are per_block and hops");
        gateways.hops = gateway_hops(topology, gateways);
        if (gateways.hops.empty()) section.refuse("nodes", "leaves a block without a gateway");
    }
    return gateways;
}

TierTraits read_tier(Section const& section)
{
    section.only({"name", "kind", "place", "directory", "latency", "bandwidth", "write_bandwidth", "read_bandwidth",
                  "capacity", "persistency", "origin"});
    TierTraits tier;
    tier.name = section.text("name").value_or("");
    if (tier.name.empty()) section.refuse("name", "is missing");
    auto const stem = tier.name.substr(0, tier.name.find(':'));
    static std::map<std::string_view, std::string_view> const usual{
        {"dram", "dram"}, {"hbm", "numa"}, {"numa", "numa"}, {"ssd", "ssd"}};
    if (auto const kind = section.text("kind"))
        tier.kind = *kind;
    else if (auto const found = usual.find(stem); found != usual.end())
        tier.kind = found->second;
    else
        section.refuse("kind", fmt::format("is missing: tier '{}' may be dram, numa or ssd", tier.name));
    one_of(section, "kind", tier.kind, {"dram", "numa", "ssd"});
    if (section.has("place") && section.has("directory")) section.refuse("directory", "is another word for tier.place");
    auto const place = section.has("place") ? section.text("place") : section.text("directory");
    tier.place = place.value_or(stem.size() < tier.name.size() ? tier.name.substr(stem.size() + 1) : "");

    auto const persistency = section.text("persistency").value_or(tier.kind == "ssd" ? "job" : "none");
    one_of(section, "persistency", persistency, {"none", "job", "permanent"});
    tier.persistency = persistency == "none"  ? Persistency::none
                       : persistency == "job" ? Persistency::job
                                              : Persistency::permanent;
    auto const word = section.text("origin").value_or("platform");
    one_of(section, "origin", word, {"assumed", "hwloc", "measured", "platform"});
    auto const origin = word == "assumed"    ? Origin::assumed
                        : word == "hwloc"    ? Origin::hwloc
                        : word == "measured" ? Origin::measured
                                             : Origin::platform;
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

std::vector<TierTraits> read_tiers(Section const& file)
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

Storage read_storage(Section const& section)
{
    section.only({"type", "block", "stripe", "stripe_count", "write_streams", "read_streams", "write_bandwidth",
                  "read_bandwidth", "remote"});
    if (!section.has("type")) section.refuse("type", "is missing");
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
    return storage;
}

std::vector<std::pair<std::string, std::string>> read_settings(Section const& section)
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

Machine read_machine(Section const& file, std::string const& where)
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
    machine.origin =
        fmt::format("platform file {}{}", where, draft.assumed ? "; latency or bandwidth of links assumed" : "");
    return machine;
}

/// A key of a million parts would become a million tables in each other, and overflow the stack when they are dropped.
/// 0 if there is no such line.
int overlong_line(std::string_view text)
{
    constexpr int most_dots = 10'000;
    int line = 1, dots = 0;
    for (char const c : text) {
        if (c == '\n') ++line, dots = 0;
        if (c == '.' && ++dots > most_dots) return line;
    }
    return 0;
}

core::Result<Machine> refused(std::string text)
{
    // Keys and values may hold anything, a message is one line.
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
    return core::fail(Errc::setting, std::move(text));
}

}  // namespace

core::Result<Machine> parse_platform(std::string_view text, std::string const& where)
{
    if (int const line = overlong_line(text))
        return refused(fmt::format("{}:{}:1: a line with more than 10000 dots", where, line));
    try {
        auto const table = toml::parse(text);
        return read_machine(Section(where, table, ""), where);
    } catch (toml::parse_error const& error) {
        auto const at = error.source().begin;
        return refused(fmt::format("{}:{}:{}: {}", where, at.line, at.column, error.description()));
    } catch (Refused const& refusal) {
        return refused(refusal.text);
    }
}

}  // namespace tapioca::machine
