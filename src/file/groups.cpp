#include "file/groups.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/core.h>

namespace tapioca::file {

namespace {

/// The number after the colon, as in nodes:4; at least 1, since a layout may be that of a forged index.
int number_in(std::string const& layout)
{
    int number = 1;
    auto const colon = layout.find(':') + 1;
    std::from_chars(layout.data() + colon, layout.data() + layout.size(), number);
    return std::max(number, 1);
}

/// The key of a node's group: nodes with the same key are in one group.
core::Result<std::vector<int>> keys_by_machine(std::string const& layout, engine::DiscoveredMachine const& around)
{
    auto const& machine = *around.machine;
    auto const lacks = [&](char const* what) {
        return core::fail(Errc::setting,
                          fmt::format("subfile={}: it is not known which {} ({}); choose node, nodes:N or files:N, or "
                                      "name a platform that says it",
                                      layout, what, machine.origin.empty() ? "no platform file" : machine.origin));
    };
    std::vector<int> keys;
    for (auto const node : around.where) {
        if (layout == "switch") {
            keys.push_back(machine.topology->switch_of(node));
            if (keys.back() < 0) return lacks("nodes are below one switch");
        } else if (layout == "pset") {
            if (machine.gateways.block <= 0) return lacks("nodes form a block with its own gateways");
            keys.push_back(node / machine.gateways.block);
        } else {
            if (machine.gateways.through.empty()) return lacks("gateway a node uses");
            keys.push_back(machine.gateways.through[static_cast<std::size_t>(node)]);
        }
    }
    return keys;
}

}  // namespace

core::Result<Groups> groups_of(std::string const& layout, comm::Team const& team,
                               engine::DiscoveredMachine const& around)
{
    auto const& nodes = team.nodes();
    auto const count = static_cast<int>(nodes.size());
    std::vector<int> keys(nodes.size());
    Groups groups;
    groups.of_rank.resize(static_cast<std::size_t>(team.size()));
    if (layout.starts_with("files:") && number_in(layout) > count) {  // nodes have to be divided
        auto const files = std::min<std::int64_t>(number_in(layout), team.size());
        for (std::int64_t rank = 0; rank < team.size(); ++rank)
            groups.of_rank[static_cast<std::size_t>(rank)] = static_cast<int>(rank * files / team.size());
        groups.count = static_cast<int>(files);
        return groups;
    }
    if (layout == "switch" || layout == "pset" || layout == "gateway") {
        auto found = keys_by_machine(layout, around);
        if (!found) return tl::unexpected(found.error());
        keys = std::move(*found);
    } else {
        for (std::int64_t node = 0; node < count; ++node)
            keys[static_cast<std::size_t>(node)] =
                static_cast<int>(layout.starts_with("nodes:")   ? node / number_in(layout)
                                 : layout.starts_with("files:") ? node * number_in(layout) / count
                                                                : node);
    }
    std::map<int, int> numbers;  // of the groups, by their keys
    std::vector<int> key_of_rank(static_cast<std::size_t>(team.size()));
    for (std::size_t node = 0; node < nodes.size(); ++node)
        for (auto const rank : nodes[node]) key_of_rank[static_cast<std::size_t>(rank)] = keys[node];
    for (std::size_t rank = 0; rank < key_of_rank.size(); ++rank)
        groups.of_rank[rank] = numbers.try_emplace(key_of_rank[rank], static_cast<int>(numbers.size())).first->second;
    groups.count = static_cast<int>(numbers.size());
    return groups;
}

bool within_nodes(Groups const& groups, comm::Team const& team)
{
    std::map<int, std::size_t> node_of;  // of a group
    for (std::size_t node = 0; node < team.nodes().size(); ++node)
        for (auto const rank : team.nodes()[node])
            if (node_of.try_emplace(groups.of_rank[static_cast<std::size_t>(rank)], node).first->second != node)
                return false;
    return true;
}

}  // namespace tapioca::file
