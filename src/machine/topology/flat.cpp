// flat: hosts behind one switch.
#include "machine/topology/drawing.hpp"
#include "machine/topology/kind.hpp"
#include "machine/topology/tally.hpp"

namespace tapioca::machine {

extern TopologyKind const flat_topology;

namespace {

class Flat final : public Topology {
public:
    Flat(int nodes, Level link) : Topology(flat_topology, nodes, {std::move(link)}) {}

    [[nodiscard]] std::vector<int> dimensions() const override { return {nodes()}; }
    [[nodiscard]] std::vector<int> coordinates(int node) const override { return {node}; }
    [[nodiscard]] std::vector<int> hops(int from, int to) const override { return {distance(from, to)}; }
    [[nodiscard]] int distance(int from, int to) const override { return from == to ? 0 : 2; }

    [[nodiscard]] std::vector<int> nearest(std::span<int const> places) const override
    {
        std::vector<int> result(static_cast<std::size_t>(nodes()), 2);
        for (int const place : places) result[place] = 0;
        return result;
    }

    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        std::vector<double> result;
        auto const own = per_node(sources, nodes());
        auto const all = total(own);
        result.reserve(own.size());
        for (auto const& tally : own) {
            auto const others = all - tally;
            result.push_back(2 * others.sources * charges[0].per_hop_s + others.bytes * charges[0].per_byte_s);
        }
        return result;
    }

    [[nodiscard]] int switch_of(int /*node*/) const override { return 0; }
    [[nodiscard]] std::string to_toml(std::vector<std::string> const& /*hosts*/) const override { return {}; }
    [[nodiscard]] std::shared_ptr<Topology const> with_levels(std::vector<Level> levels) const override
    {
        return make_flat(nodes(), levels.at(0));
    }
    [[nodiscard]] TopologyDrawing layout(std::vector<int> const& used, double cell) const override
    {
        auto const drawn = nodes_to_draw(*this, used);
        auto const columns = columns_for(static_cast<int>(drawn.size()), 1, 1);
        return framed(cells(drawn, columns, cell, layout_gap(cell)), "one switch", 10);
    }
};

SharedTopology read_flat(TomlTable const& topology, Draft& draft)
{
    auto const nodes = topology.integer("nodes", 1, most_nodes);
    if (!nodes && draft.hosts.empty()) topology.refuse("nodes", "is missing");
    return make_flat(nodes.value_or(static_cast<int>(draft.hosts.size())), read_levels(topology, {"link"}, draft)[0]);
}

}  // namespace

TopologyKind const flat_topology = {
    .name = "flat",
    .help = "hosts behind one switch",
    .read = read_flat,
};

std::shared_ptr<Topology const> make_flat(int nodes, Level link)
{
    return std::make_shared<Flat>(nodes, std::move(link));
}

}  // namespace tapioca::machine
