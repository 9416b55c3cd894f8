#include "layout.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>
#include <set>

#include <fmt/core.h>

namespace tools {

namespace {

using tapioca::machine::Machine;
using tapioca::machine::Topology;

constexpr double aspect = 1.5;  // width to height that a picture should have
constexpr double most_width = 1120, most_height = 860;
constexpr double caption = 17;  // height of a frame's label

void put(Layout& into, Layout const& part, double dx, double dy)
{
    for (auto spot : part.spots) into.spots.push_back({spot.node, spot.x + dx, spot.y + dy});
    for (auto frame : part.frames) {
        frame.x += dx;
        frame.y += dy;
        into.frames.push_back(std::move(frame));
    }
    into.width = std::max(into.width, dx + part.width);
    into.height = std::max(into.height, dy + part.height);
}

double width_of(std::string const& text)
{
    return 6.2 * static_cast<double>(text.size());
}

/// A frame around `inside`, with its label above the contents.
Layout framed(Layout const& inside, std::string const& label, double pad)
{
    Layout result;
    auto const width = std::max(inside.width, width_of(label));
    put(result, inside, pad + (width - inside.width) / 2, pad + caption);
    result.width = width + 2 * pad;
    result.height = inside.height + 2 * pad + caption;
    result.frames.insert(result.frames.begin(), {0, 0, result.width, result.height, label, false});
    return result;
}

/// Parts in rows of `columns`, in slots of the size of the largest.
Layout in_rows(std::vector<Layout> const& parts, int columns, double space)
{
    Layout result;
    double width = 0, height = 0;
    for (auto const& part : parts) {
        width = std::max(width, part.width);
        height = std::max(height, part.height);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto const column = static_cast<double>(i % static_cast<std::size_t>(columns));
        auto const row = static_cast<double>(i / static_cast<std::size_t>(columns));
        put(result, parts[i], column * (width + space), row * (height + space));
    }
    return result;
}

/// How many columns bring `count` parts of this size near the aspect; the last row is full where that costs little.
int columns_for(int count, double width, double height)
{
    int best = 1;
    double least = 1e300;
    for (int columns = 1; columns <= count; ++columns) {
        auto const rows = (count + columns - 1) / columns;
        auto const empty = static_cast<double>(rows * columns - count) / count;
        auto const off = std::abs(std::log(columns * width / (rows * height) / aspect)) + 3 * empty;
        if (off < least) {
            least = off;
            best = columns;
        }
    }
    return best;
}

Layout pack(std::vector<Layout> const& parts, double space)
{
    double width = 1, height = 1;
    for (auto const& part : parts) {
        width = std::max(width, part.width + space);
        height = std::max(height, part.height + space);
    }
    return in_rows(parts, columns_for(static_cast<int>(parts.size()), width, height), space);
}

Layout cells(std::vector<int> const& nodes, int columns, double cell, double space)
{
    std::vector<Layout> parts;
    for (auto const node : nodes) {
        auto& part = parts.emplace_back();
        part.spots.push_back({node, 0, 0});
        part.width = part.height = cell;
    }
    return in_rows(parts, columns, space);
}

bool much_larger(Topology const& topology, std::vector<int> const& used)
{
    return topology.nodes() > 2 * static_cast<int>(used.size());
}

std::vector<int> all_of(Topology const& topology)
{
    std::vector<int> nodes(static_cast<std::size_t>(topology.nodes()));
    std::iota(nodes.begin(), nodes.end(), 0);
    return nodes;
}

std::vector<int> grid_nodes(Topology const& topology, std::vector<int> const& used)
{
    auto nodes = much_larger(topology, used) ? used : all_of(topology);
    std::sort(nodes.begin(), nodes.end());
    return nodes;
}

Layout flat(Topology const& topology, std::vector<int> const& used, double cell)
{
    auto const nodes = grid_nodes(topology, used);
    auto const columns = columns_for(static_cast<int>(nodes.size()), 1, 1);
    return framed(cells(nodes, columns, cell, gap(cell)), "one switch", 10);
}

/// Switches in switches; `path` is the way from the top to this one, `nodes` are below it.
Layout tree(Topology const& topology, std::vector<int> const& nodes, std::vector<int> const& path, double cell)
{
    auto const dimensions = topology.dimensions();
    auto const depth = path.size();
    std::string name;
    for (auto const place : path) name += (name.empty() ? "" : ".") + std::to_string(place);
    if (depth + 1 == dimensions.size()) {
        auto const columns = columns_for(dimensions.back(), 1, 1);
        return framed(cells(nodes, columns, cell, gap(cell)), path.empty() ? "one switch" : "switch " + name, 7);
    }
    std::map<int, std::vector<int>> below;
    for (auto const node : nodes) below[topology.coordinates(node)[depth]].push_back(node);
    std::vector<Layout> parts;
    for (auto const& [place, those] : below) {
        auto further = path;
        further.push_back(place);
        parts.push_back(tree(topology, those, further, cell));
    }
    auto const label = path.empty() ? std::string("top switch") : "switch " + name;
    return framed(pack(parts, 8), label, 10);
}

Layout fat_tree(Topology const& topology, std::vector<int> const& used, double cell)
{
    auto nodes = all_of(topology);
    if (much_larger(topology, used)) {
        auto const leaf = [&](int node) {
            auto path = topology.coordinates(node);
            path.pop_back();
            return path;
        };
        std::set<std::vector<int>> leaves;
        for (auto const node : used) leaves.insert(leaf(node));
        std::erase_if(nodes, [&](int node) { return !leaves.contains(leaf(node)); });
    }
    return tree(topology, nodes, {}, cell);
}

Layout dragonfly(Topology const& topology, std::vector<int> const& used, double cell)
{
    auto const shape = topology.dimensions();
    auto const per_router = shape[3];
    std::set<int> groups;
    if (much_larger(topology, used))
        for (auto const node : used) groups.insert(topology.coordinates(node)[0]);
    else
        for (int group = 0; group < shape[0]; ++group) groups.insert(group);
    // Of the machine's last rows none may be used: those are left out, too.
    int rows = shape[1];
    if (much_larger(topology, used)) {
        rows = 1;
        for (auto const node : used) rows = std::max(rows, topology.coordinates(node)[1] + 1);
    }
    auto const columns = static_cast<int>(std::ceil(std::sqrt(per_router)));
    std::vector<Layout> parts;
    for (auto const group : groups) {
        std::vector<Layout> routers;
        for (int router = 0; router < rows * shape[2]; ++router) {
            std::vector<int> nodes(static_cast<std::size_t>(per_router));
            std::iota(nodes.begin(), nodes.end(), (group * shape[1] * shape[2] + router) * per_router);
            auto const inside = cells(nodes, columns, cell, gap(cell) / 2);
            auto const pad = gap(cell) / 2;
            auto& part = routers.emplace_back();
            put(part, inside, pad, pad);
            part.width += pad;
            part.height += pad;
            part.frames.push_back({0, 0, part.width, part.height, "", true});
        }
        parts.push_back(framed(in_rows(routers, shape[2], gap(cell)), fmt::format("group {}", group), 8));
    }
    return pack(parts, 12);
}

/// One direction of a torus laid out flat: some of its dimensions, fastest first, slower ones in wider steps.
struct Axis {
    std::vector<std::size_t> dimensions;
    std::vector<double> steps;  ///< from one place of a dimension to the next
    std::vector<double> sizes;  ///< of one place
    double length;

    Axis(std::vector<std::size_t> those, std::vector<int> const& extent, double cell)
        : dimensions(std::move(those)), length(cell)
    {
        double step = cell + gap(cell);
        for (auto const d : dimensions) {
            steps.push_back(step);
            sizes.push_back(length);
            length = step * (extent[d] - 1) + length;
            step = length + gap(cell) + 0.5 * cell;
        }
    }
    [[nodiscard]] double place(std::vector<int> const& at) const
    {
        double result = 0;
        for (std::size_t i = 0; i < dimensions.size(); ++i) result += at[dimensions[i]] * steps[i];
        return result;
    }
};

/// The part of a torus to draw: `extent` places of each dimension from `first` on.
struct Part {
    std::vector<int> first, extent;

    Part(Topology const& topology, std::vector<int> const& used) : extent(topology.dimensions())
    {
        first.assign(extent.size(), 0);
        if (!much_larger(topology, used)) return;
        auto last = first;
        first = extent;
        for (auto const node : used) {
            auto const at = topology.coordinates(node);
            for (std::size_t d = 0; d < at.size(); ++d) {
                first[d] = std::min(first[d], at[d]);
                last[d] = std::max(last[d], at[d]);
            }
        }
        for (std::size_t d = 0; d < last.size(); ++d) extent[d] = last[d] - first[d] + 1;
    }
    /// Places within the part, or nothing if the node is outside.
    [[nodiscard]] std::vector<int> within(std::vector<int> at) const
    {
        for (std::size_t d = 0; d < at.size(); ++d) {
            at[d] -= first[d];
            if (at[d] < 0 || at[d] >= extent[d]) return {};
        }
        return at;
    }
    /// The dimensions of set bits, fastest first, without those of one place only.
    [[nodiscard]] std::vector<std::size_t> chosen(unsigned bits) const
    {
        std::vector<std::size_t> result;
        for (auto d = extent.size(); d-- > 0;)
            if (extent[d] > 1 && (bits >> d & 1U)) result.push_back(d);
        return result;
    }
    [[nodiscard]] std::string name(std::size_t dimension, int place) const
    {
        auto const letter = static_cast<char>((extent.size() > 3 ? 'A' : 'X') + static_cast<int>(dimension));
        return letter + std::to_string(first[dimension] + place);
    }
};

constexpr double label_across = 15, label_down = 24;

/// Calls use(level, text, centre) for the labels of an axis, in rows by level; levels too narrow for them are left out.
void for_each_label(Axis const& axis, Part const& part, bool across,
                    std::function<void(std::size_t, std::string const&, double)> const& use)
{
    std::size_t row = 0;
    for (std::size_t level = 0; level < axis.steps.size(); ++level) {
        auto const last = part.name(axis.dimensions[level], part.extent[axis.dimensions[level]] - 1);
        if (axis.steps[level] < (across ? width_of(last) + 2 : 11)) continue;
        std::vector<double> starts{0};
        for (auto outer = level + 1; outer < axis.steps.size(); ++outer) {
            std::vector<double> further;
            for (auto const start : starts)
                for (int i = 0; i < part.extent[axis.dimensions[outer]]; ++i)
                    further.push_back(start + i * axis.steps[outer]);
            starts = std::move(further);
        }
        for (auto const start : starts)
            for (int i = 0; i < part.extent[axis.dimensions[level]]; ++i)
                use(row, part.name(axis.dimensions[level], i), start + i * axis.steps[level] + axis.sizes[level] / 2);
        ++row;
    }
}

Layout torus(Topology const& topology, std::vector<int> const& used, double cell)
{
    Part const part(topology, used);
    auto const everything = (1U << part.extent.size()) - 1;
    unsigned across = 0;
    double least = 1e300;
    for (unsigned bits = 0; bits <= everything; ++bits) {
        auto const width = Axis(part.chosen(bits), part.extent, cell).length;
        auto const height = Axis(part.chosen(everything & ~bits), part.extent, cell).length;
        if (auto const off = std::abs(std::log(width / height / aspect)); off < least) {
            least = off;
            across = bits;
        }
    }
    Axis const x(part.chosen(across), part.extent, cell);
    Axis const y(part.chosen(everything & ~across), part.extent, cell);
    double top = 0, left = 0;
    for_each_label(x, part, true,
                   [&](std::size_t row, auto&&...) { top = (static_cast<double>(row) + 1) * label_across; });
    for_each_label(y, part, false,
                   [&](std::size_t row, auto&&...) { left = (static_cast<double>(row) + 1) * label_down; });
    auto const border = 0.3 * cell + gap(cell) / 2;  // room for the tint of blocks
    left += border;
    top += border;
    Layout result;
    for_each_label(x, part, true, [&](std::size_t row, std::string const& text, double at) {
        result.texts.push_back({left + at, top - border - 4 - static_cast<double>(row) * label_across, text});
    });
    for_each_label(y, part, false, [&](std::size_t row, std::string const& text, double at) {
        result.texts.push_back({left - border - 12 - static_cast<double>(row) * label_down, top + at + 4, text});
    });
    for (int node = 0; node < topology.nodes(); ++node)
        if (auto const at = part.within(topology.coordinates(node)); !at.empty())
            result.spots.push_back({node, left + x.place(at), top + y.place(at)});
    result.width = left + x.length + border;
    result.height = top + y.length + border;
    return result;
}

/// In a circle, with an edge where no third node lies on the way; many nodes in a grid.
Layout matrix(Topology const& topology, std::vector<int> const& used, double cell)
{
    auto const nodes = grid_nodes(topology, used);
    auto const count = static_cast<int>(nodes.size());
    if (count > 16) return cells(nodes, columns_for(count, 1, 1), cell, gap(cell));
    auto const radius = std::max(1.6, 0.5 * count) * cell;
    Layout result;
    result.width = 2 * radius + cell;
    result.height = result.width + 2 * caption;
    auto const half = cell / 2;
    for (int i = 0; i < count; ++i) {
        auto const angle = std::numbers::pi * (2.0 * i / count - (count == 4 ? 0.75 : 0.5));
        result.spots.push_back({nodes[static_cast<std::size_t>(i)], radius * (1 + std::cos(angle)),
                                caption + radius * (1 + std::sin(angle))});
    }
    for (int i = 0; i < count; ++i)
        for (int j = i + 1; j < count; ++j) {
            auto const& a = result.spots[static_cast<std::size_t>(i)];
            auto const& b = result.spots[static_cast<std::size_t>(j)];
            auto const distance = topology.distance(a.node, b.node);
            auto const between = [&](int node) {
                return node != a.node && node != b.node &&
                       topology.distance(a.node, node) + topology.distance(node, b.node) <= distance;
            };
            if (std::any_of(nodes.begin(), nodes.end(), between)) continue;
            auto const beside = j == i + 1 || (i == 0 && j + 1 == count);
            result.edges.push_back({a.x + half, a.y + half, b.x + half, b.y + half, std::to_string(distance),
                                    beside ? 0.5 : 0.36});  // others meet in the middle
        }
    return result;
}

Layout with_cells(Topology const& topology, std::vector<int> const& used, double cell)
{
    static std::map<std::string_view, Layout (*)(Topology const&, std::vector<int> const&, double)> const kinds{
        {"flat", flat}, {"torus", torus}, {"dragonfly", dragonfly}, {"fat_tree", fat_tree}, {"matrix", matrix}};
    auto const kind = kinds.find(topology.kind());
    auto result = kind == kinds.end() ? flat(topology, used, cell) : kind->second(topology, used, cell);
    result.cell = cell;
    return result;
}

}  // namespace

double gap(double cell)
{
    return std::max(1.5, 0.14 * cell);
}

Layout arrange(Machine const& machine, std::vector<int> const& used)
{
    Layout result;
    for (double const cell : {56, 48, 40, 34, 28, 24, 20, 17, 14, 12, 10, 8, 7}) {
        result = with_cells(*machine.topology, used, cell);
        if (result.width <= most_width && result.height <= most_height) break;
    }
    return result;
}

}  // namespace tools
