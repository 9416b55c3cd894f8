#include "machine/platform/topology.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/units.hpp"
#include "machine/machine.hpp"
#include "machine/platform/figures.hpp"
#include "machine/platform/switches.hpp"

namespace tapioca::machine {

namespace {

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
    static auto const& rows = *new std::vector<TopologyRow>{
        {"flat", {}, &read_flat},
        {"torus", {"dimensions"}, &read_torus},
        {"dragonfly", {"groups", "rows", "columns", "nodes_per_router"}, &read_dragonfly},
        {"fat_tree", {"arity", "switches"}, &read_fat_tree},
        {"matrix", {"distances"}, &read_matrix},
    };
    return rows;
}

}  // namespace

SharedTopology read_topology(Section const& topology, Draft& draft)
{
    auto const kind = topology.text("kind");
    if (!kind) topology.refuse("kind", "is missing");
    Section::Keys kinds;
    for (auto const& row : topology_rows()) kinds.push_back(row.kind);
    topology.one_of("kind", *kind, kinds);
    auto const row =
        std::find_if(topology_rows().begin(), topology_rows().end(), [&](auto& r) { return r.kind == *kind; });
    Section::Keys keys{"kind", "nodes", "level"};
    keys.insert(keys.end(), row->keys.begin(), row->keys.end());
    return row->read(topology.only(keys), draft);
}

}  // namespace tapioca::machine
