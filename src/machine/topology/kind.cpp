// Reads topologies: what all kinds have in common.
#include "machine/topology/kind.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "core/units.hpp"
#include "machine/platform/figures.hpp"

namespace tapioca::machine {

std::vector<Level> read_levels(TomlTable const& topology, std::vector<std::string> const& names, Draft& draft)
{
    auto const given = topology.sections("level");
    if (given.size() > names.size())
        topology.refuse(
            "level", fmt::format("has {} entries; the most that are possible here is {}", given.size(), names.size()));
    std::vector<Level> levels;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto level = i < given.size() || given.empty() ? assumed_level(names[i]) : levels.back();
        level.name = names[i];
        if (i < given.size()) {
            auto const& section = given[i].only({"name", "latency", "bandwidth", "links"});
            level.name = section.text("name").value_or(names[i]);
            level.latency_s = section.latency("latency").value_or(level.latency_s);
            level.bandwidth = section.bandwidth("bandwidth").value_or(level.bandwidth);
            level.links = section.integer("links", 0, most_nodes).value_or(level.links);
            draft.assumed = draft.assumed || !section.has("latency") || !section.has("bandwidth");
        }
        levels.push_back(std::move(level));
    }
    draft.assumed = draft.assumed || given.empty();
    return levels;
}

int multiply_up(TomlTable const& topology, std::string_view key, std::vector<int> const& sizes)
{
    std::uint64_t product = 1;
    for (int const size : sizes) product = core::multiply(product, static_cast<std::uint64_t>(size));
    if (product > most_nodes) topology.refuse(key, fmt::format("multiplies up to more than {} nodes", most_nodes));
    auto const nodes = topology.integer("nodes", 1, most_nodes);
    if (nodes && static_cast<std::uint64_t>(*nodes) != product)
        topology.refuse(key, fmt::format("multiplies up to {} nodes, topology.nodes is {}", product, *nodes));
    return static_cast<int>(product);
}

SharedTopology read_topology(TomlTable const& topology, Draft& draft)
{
    auto const kind = topology.text("kind");
    if (!kind) topology.refuse("kind", "is missing");
    TomlTable::Keys names;
    for (auto const* const known : topology_kinds()) names.push_back(known->name);
    topology.one_of("kind", *kind, names);
    auto const kinds = topology_kinds();
    auto const* const found =
        *std::find_if(kinds.begin(), kinds.end(), [&](auto const* k) { return k->name == *kind; });
    TomlTable::Keys keys{"kind", "nodes", "level"};
    keys.insert(keys.end(), found->keys.begin(), found->keys.end());
    auto read = found->read(topology.only(keys), draft);
    if (read->has_shared_links() && read->switch_below(read->levels().size() - 1, 0) < 0)
        topology.refuse("level", "has links that nodes share, which only a fat_tree of several levels has");
    return read;
}

}  // namespace tapioca::machine
