#include <map>

#include "links.hpp"

namespace calibrate {

namespace {

namespace machine = tapioca::machine;
using Switches = std::vector<std::vector<int>>;

/// A tree's switches from the ways down to its nodes: nodes with the same beginning share a switch.
Switches switches_of(machine::Topology const& tree)
{
    auto const levels = tree.levels().size();
    Switches switches(levels);
    for (std::size_t level = 0; level < levels; ++level) {
        std::map<std::vector<int>, int> numbers;
        for (int node = 0; node < tree.nodes(); ++node) {
            auto way = tree.coordinates(node);
            way.resize(levels - 1 - level);
            switches[level].push_back(numbers.emplace(std::move(way), static_cast<int>(numbers.size())).first->second);
        }
    }
    return switches;
}

}  // namespace

std::shared_ptr<machine::Topology const> with_levels(machine::Topology const& topology,
                                                     std::vector<machine::Level> levels)
{
    auto const sizes = topology.dimensions();
    if (topology.kind() == "flat") return machine::make_flat(topology.nodes(), levels[0]);
    if (topology.kind() == "torus") return machine::make_torus(sizes, levels[0]);
    if (topology.kind() == "dragonfly")
        return machine::make_dragonfly({sizes[0], sizes[1], sizes[2], sizes[3]}, levels[0], levels[1], levels[2]);
    if (topology.kind() == "fat_tree") return machine::make_fat_tree(switches_of(topology), std::move(levels));
    std::vector<std::vector<int>> distances;
    for (int from = 0; from < topology.nodes(); ++from) {
        auto& row = distances.emplace_back();
        for (int to = 0; to < topology.nodes(); ++to) row.push_back(topology.distance(from, to));
    }
    return machine::make_matrix(std::move(distances), levels[0]);
}

}  // namespace calibrate
