// ring: a topology that the library does not have. Every node has two neighbours.
#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "machine/topology/drawing.hpp"
#include "machine/topology/kind.hpp"
#include "machine/topology/tally.hpp"

namespace tapioca::machine {

extern TopologyKind const ring_topology;

namespace {

class Ring final : public Topology {
public:
    Ring(int size, std::string name, Level link)
        : Topology(ring_topology, size, {std::move(link)}), name_(std::move(name))
    {
    }

    [[nodiscard]] std::vector<int> dimensions() const override { return {nodes()}; }
    [[nodiscard]] std::vector<int> coordinates(int node) const override { return {node}; }
    [[nodiscard]] std::vector<int> hops(int from, int to) const override { return {distance(from, to)}; }
    [[nodiscard]] int distance(int from, int to) const override
    {
        auto const one_way = std::abs(from - to);
        return std::min(one_way, nodes() - one_way);
    }
    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        std::vector<double> result(static_cast<std::size_t>(nodes()), 0);
        for (int to = 0; to < nodes(); ++to)
            for (auto const& source : sources) result[static_cast<std::size_t>(to)] += cost(source, to, charges);
        return result;
    }

    [[nodiscard]] std::string to_toml(std::vector<std::string> const& /*hosts*/) const override
    {
        return fmt::format("finger = \"{}\"\n", name_);
    }
    [[nodiscard]] std::shared_ptr<Topology const> with_levels(std::vector<Level> levels) const override
    {
        return std::make_shared<Ring>(nodes(), name_, levels.at(0));
    }
    [[nodiscard]] TopologyDrawing layout(std::vector<int> const& used, double cell) const override
    {
        auto const drawn = nodes_to_draw(*this, used);
        return framed(cells(drawn, static_cast<int>(drawn.size()), cell, layout_gap(cell)), "ring " + name_, 10);
    }

private:
    std::string name_;
};

SharedTopology read_ring(TomlTable const& topology, Draft& draft)
{
    auto const nodes = topology.integer("nodes", 3, most_nodes);
    if (!nodes) topology.refuse("nodes", "is missing");
    return std::make_shared<Ring>(*nodes, topology.text("finger").value_or("index"),
                                  read_levels(topology, {"link"}, draft)[0]);
}

constexpr std::string_view ring_keys[] = {"finger"};

}  // namespace

TopologyKind const ring_topology = {
    .name = "ring",
    .help = "every node has two neighbours",
    .keys = ring_keys,
    .read = read_ring,
};

}  // namespace tapioca::machine
