// dragonfly: groups of routers, each of which has links to the other groups.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <fmt/core.h>

#include "machine/topology/drawing.hpp"
#include "machine/topology/kind.hpp"
#include "machine/topology/tally.hpp"

namespace tapioca::machine {

extern TopologyKind const dragonfly_topology;

namespace {

/// A group of routers, and a row and a column in it. The path inside groups has one link if rows differ, and one if
/// columns differ.
struct Router {
    int group, row, column;
};

class Dragonfly final : public Topology {
public:
    Dragonfly(DragonflyShape const& shape, std::vector<Level> levels)
        : Topology(dragonfly_topology, shape.groups * shape.rows * shape.columns * shape.nodes_per_router,
                   std::move(levels)),
          shape_(shape)
    {
    }

    [[nodiscard]] std::vector<int> dimensions() const override
    {
        return {shape_.groups, shape_.rows, shape_.columns, shape_.nodes_per_router};
    }

    [[nodiscard]] std::vector<int> coordinates(int node) const override
    {
        auto const [group, row, column] = router(node);
        return {group, row, column, node % shape_.nodes_per_router};
    }

    [[nodiscard]] std::vector<int> hops(int from, int to) const override
    {
        if (from == to) return {0, 0, 0};
        auto const a = router(from), b = router(to);
        return {2, int{a.row != b.row} + int{a.column != b.column}, int{a.group != b.group}};
    }

    [[nodiscard]] int distance(int from, int to) const override
    {
        if (from == to) return 0;
        auto const a = router(from), b = router(to);
        return 2 + int{a.row != b.row} + int{a.column != b.column} + int{a.group != b.group};
    }

    /// Coordinate by coordinate: stay, or take one link from the best of those that differ in this coordinate.
    [[nodiscard]] std::vector<int> nearest(std::span<int const> places) const override
    {
        int const routers = nodes() / shape_.nodes_per_router;
        std::vector<int> links(static_cast<std::size_t>(routers), std::numeric_limits<int>::max() / 2);
        for (int const place : places) links[place / shape_.nodes_per_router] = 0;
        int stride = 1;
        for (int const size : {shape_.columns, shape_.rows, shape_.groups}) {
            for (int first = 0; first < routers; ++first) {
                if (first / stride % size != 0) continue;
                int best = links[first];
                for (int i = 1; i < size; ++i) best = std::min(best, links[first + i * stride]);
                for (int i = 0; i < size; ++i)
                    links[first + i * stride] = std::min(links[first + i * stride], best + 1);
            }
            stride *= size;
        }
        std::vector<int> result(static_cast<std::size_t>(nodes()));
        for (int node = 0; node < nodes(); ++node) result[node] = 2 + links[node / shape_.nodes_per_router];
        for (int const place : places) result[place] = 0;
        return result;
    }

    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        auto const own = per_node(sources, nodes());
        auto const all = total(own);
        auto const tallies = [](int size) { return std::vector<Tally>(static_cast<std::size_t>(size)); };
        auto at_router = tallies(nodes() / shape_.nodes_per_router), in_group = tallies(shape_.groups),
             at_place = tallies(shape_.rows * shape_.columns), in_row = tallies(shape_.rows),
             in_column = tallies(shape_.columns);
        for (int node = 0; node < nodes(); ++node) {
            auto const [group, row, column] = router(node);
            at_router[node / shape_.nodes_per_router] += own[node];
            in_group[group] += own[node];
            at_place[row * shape_.columns + column] += own[node];
            in_row[row] += own[node];
            in_column[column] += own[node];
        }

        auto const per_byte = [&](std::initializer_list<int> levels) {
            double dearest = 0;
            for (int const level : levels) dearest = std::max(dearest, charges[level].per_byte_s);
            return dearest;
        };
        double const near_s = per_byte({0}), inside_s = per_byte({0, 1}), between_s = per_byte({0, 2}),
                     both_s = per_byte({0, 1, 2});
        std::vector<double> result;
        result.reserve(own.size());
        for (int node = 0; node < nodes(); ++node) {
            auto const [group, row, column] = router(node);
            auto const& here = at_router[node / shape_.nodes_per_router];
            auto const& mirrored = at_place[row * shape_.columns + column];  // at the same place of any group
            auto const beyond = all - in_group[group];
            double const inside_links = (all - in_row[row]).sources + (all - in_column[column]).sources;
            result.push_back(2 * (all - own[node]).sources * charges[0].per_hop_s +
                             inside_links * charges[1].per_hop_s + beyond.sources * charges[2].per_hop_s +
                             (here - own[node]).bytes * near_s + (in_group[group] - here).bytes * inside_s +
                             (mirrored - here).bytes * between_s + (beyond - (mirrored - here)).bytes * both_s);
        }
        return result;
    }

    [[nodiscard]] std::string to_toml(std::vector<std::string> const& /*hosts*/) const override
    {
        return fmt::format("groups = {}\nrows = {}\ncolumns = {}\nnodes_per_router = {}\n", shape_.groups, shape_.rows,
                           shape_.columns, shape_.nodes_per_router);
    }
    [[nodiscard]] int switch_of(int node) const override { return node / shape_.nodes_per_router; }
    [[nodiscard]] std::shared_ptr<Topology const> with_levels(std::vector<Level> levels) const override
    {
        return make_dragonfly(shape_, levels.at(0), levels.at(1), levels.at(2));
    }
    /// Groups side by side, with their routers in rows and columns. If the network is much larger than the nodes used,
    /// unused groups and the unused last rows are left out.
    [[nodiscard]] TopologyDrawing layout(std::vector<int> const& used, double cell) const override
    {
        std::set<int> groups;
        int rows = shape_.rows;
        if (much_larger(*this, used)) {
            rows = 1;
            for (int const node : used) {
                groups.insert(router(node).group);
                rows = std::max(rows, router(node).row + 1);
            }
        } else {
            for (int group = 0; group < shape_.groups; ++group) groups.insert(group);
        }
        std::vector<TopologyDrawing> parts;
        for (int const group : groups) {
            std::vector<TopologyDrawing> routers;
            for (int place = 0; place < rows * shape_.columns; ++place)
                routers.push_back(router_layout(group * shape_.rows * shape_.columns + place, cell));
            auto const inside = in_rows(routers, shape_.columns, layout_gap(cell));
            parts.push_back(framed(inside, fmt::format("group {}", group), 8));
        }
        return packed(parts, 12);
    }

private:
    [[nodiscard]] TopologyDrawing router_layout(int number, double cell) const
    {
        std::vector<int> nodes(static_cast<std::size_t>(shape_.nodes_per_router));
        std::iota(nodes.begin(), nodes.end(), number * shape_.nodes_per_router);
        auto const columns = static_cast<int>(std::ceil(std::sqrt(shape_.nodes_per_router)));
        auto const pad = layout_gap(cell) / 2;
        TopologyDrawing result;
        put(result, cells(nodes, columns, cell, pad), pad, pad);
        result.width += pad;
        result.height += pad;
        result.frames.push_back({0, 0, result.width, result.height, "", true});
        return result;
    }

    [[nodiscard]] Router router(int node) const
    {
        int const router = node / shape_.nodes_per_router;
        int const place = router % (shape_.rows * shape_.columns);
        return {router / (shape_.rows * shape_.columns), place / shape_.columns, place % shape_.columns};
    }

    DragonflyShape shape_;
};

constexpr std::string_view dragonfly_keys[] = {"groups", "rows", "columns", "nodes_per_router"};

SharedTopology read_dragonfly(TomlTable const& topology, Draft& draft)
{
    std::vector<int> sizes;
    for (auto const key : dragonfly_keys) {
        if (!topology.has(key)) topology.refuse(key, "is missing");
        sizes.push_back(*topology.integer(key, 1, most_nodes));
    }
    (void)multiply_up(topology, "groups", sizes);
    auto const levels = read_levels(topology, {"node", "inside", "between"}, draft);
    return make_dragonfly({sizes[0], sizes[1], sizes[2], sizes[3]}, levels[0], levels[1], levels[2]);
}

}  // namespace

TopologyKind const dragonfly_topology = {
    .name = "dragonfly",
    .help = "groups of routers in rows and columns",
    .keys = dragonfly_keys,
    .read = read_dragonfly,
};

std::shared_ptr<Topology const> make_dragonfly(DragonflyShape shape, Level node, Level inside, Level between)
{
    return std::make_shared<Dragonfly>(shape, std::vector{std::move(node), std::move(inside), std::move(between)});
}

}  // namespace tapioca::machine
