// matrix: any distances.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "machine/topology/drawing.hpp"
#include "machine/topology/kind.hpp"
#include "machine/topology/tally.hpp"

namespace tapioca::machine {

extern TopologyKind const matrix_topology;

namespace {

class Matrix final : public Topology {
public:
    Matrix(std::vector<std::vector<int>> distances, Level link)
        : Topology(matrix_topology, static_cast<int>(distances.size()), {std::move(link)}),
          distances_(std::move(distances))
    {
    }

    [[nodiscard]] std::vector<int> dimensions() const override { return {nodes()}; }
    [[nodiscard]] std::vector<int> coordinates(int node) const override { return {node}; }
    [[nodiscard]] std::vector<int> hops(int from, int to) const override { return {distances_[from][to]}; }
    [[nodiscard]] int distance(int from, int to) const override { return distances_[from][to]; }

    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        auto const own = per_node(sources, nodes());
        std::vector<double> result(own.size(), 0);
        for (std::size_t from = 0; from < own.size(); ++from) {
            if (own[from].sources == 0) continue;
            for (std::size_t to = 0; to < own.size(); ++to)
                if (to != from)
                    result[to] += own[from].sources * distances_[from][to] * charges[0].per_hop_s +
                                  own[from].bytes * charges[0].per_byte_s;
        }
        return result;
    }

    [[nodiscard]] std::string to_toml(std::vector<std::string> const& /*hosts*/) const override
    {
        std::string text = "distances = [\n";
        for (auto const& row : distances_) text += fmt::format("    [{}],\n", fmt::join(row, ", "));
        return text + "]\n";
    }
    [[nodiscard]] std::shared_ptr<Topology const> with_levels(std::vector<Level> levels) const override
    {
        return make_matrix(distances_, levels.at(0));
    }
    /// Draws the nodes in a circle, with an edge between two nodes if no third node lies between them; many nodes are
    /// drawn in a grid.
    [[nodiscard]] TopologyDrawing layout(std::vector<int> const& used, double cell) const override
    {
        auto const drawn = nodes_to_draw(*this, used);
        auto const count = static_cast<int>(drawn.size());
        if (count > 16) return cells(drawn, columns_for(count, 1, 1), cell, layout_gap(cell));
        auto const radius = std::max(1.6, 0.5 * count) * cell;
        TopologyDrawing result;
        result.width = 2 * radius + cell;
        result.height = result.width + 2 * layout_caption;
        auto const half = cell / 2;
        for (int i = 0; i < count; ++i) {
            auto const angle = std::numbers::pi * (2.0 * i / count - (count == 4 ? 0.75 : 0.5));
            result.spots.push_back({drawn[static_cast<std::size_t>(i)], radius * (1 + std::cos(angle)),
                                    layout_caption + radius * (1 + std::sin(angle))});
        }
        for (int i = 0; i < count; ++i)
            for (int j = i + 1; j < count; ++j) {
                auto const& a = result.spots[static_cast<std::size_t>(i)];
                auto const& b = result.spots[static_cast<std::size_t>(j)];
                auto const hops = distances_[a.node][b.node];
                auto const between = [&](int node) {
                    return node != a.node && node != b.node &&
                           distances_[a.node][node] + distances_[node][b.node] <= hops;
                };
                if (std::any_of(drawn.begin(), drawn.end(), between)) continue;
                auto const beside = j == i + 1 || (i == 0 && j + 1 == count);
                result.edges.push_back({a.x + half, a.y + half, b.x + half, b.y + half, std::to_string(hops),
                                        beside ? 0.5 : 0.36});  // others meet in the middle
            }
        return result;
    }

private:
    std::vector<std::vector<int>> distances_;
};

SharedTopology read_matrix(TomlTable const& topology, Draft& draft)
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

constexpr std::string_view matrix_keys[] = {"distances"};

}  // namespace

TopologyKind const matrix_topology = {
    .name = "matrix",
    .help = "any distances, for small or odd machines",
    .keys = matrix_keys,
    .read = read_matrix,
};

std::shared_ptr<Topology const> make_matrix(std::vector<std::vector<int>> distances, Level link)
{
    return std::make_shared<Matrix>(std::move(distances), std::move(link));
}

}  // namespace tapioca::machine
