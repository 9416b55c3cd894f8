#include "machine/topology/drawing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tapioca::machine {

TopologyDrawing arrange(Topology const& topology, std::vector<int> const& used)
{
    constexpr double most_width = 1120, most_height = 860;
    TopologyDrawing result;
    for (double const cell : {56, 48, 40, 34, 28, 24, 20, 17, 14, 12, 10, 8, 7}) {
        result = topology.layout(used, cell);
        result.cell = cell;
        if (result.width <= most_width && result.height <= most_height) break;
    }
    return result;
}

double layout_gap(double cell)
{
    return std::max(1.5, 0.14 * cell);
}

double layout_width(std::string const& text)
{
    return 6.2 * static_cast<double>(text.size());
}

void put(TopologyDrawing& into, TopologyDrawing const& part, double dx, double dy)
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

TopologyDrawing framed(TopologyDrawing const& inside, std::string const& label, double pad)
{
    TopologyDrawing result;
    auto const width = std::max(inside.width, layout_width(label));
    put(result, inside, pad + (width - inside.width) / 2, pad + layout_caption);
    result.width = width + 2 * pad;
    result.height = inside.height + 2 * pad + layout_caption;
    result.frames.insert(result.frames.begin(), {0, 0, result.width, result.height, label, false});
    return result;
}

TopologyDrawing in_rows(std::vector<TopologyDrawing> const& parts, int columns, double space)
{
    TopologyDrawing result;
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

int columns_for(int count, double width, double height)
{
    int best = 1;
    double least = 1e300;
    for (int columns = 1; columns <= count; ++columns) {
        auto const rows = (count + columns - 1) / columns;
        auto const empty = static_cast<double>(rows * columns - count) / count;
        auto const off = std::abs(std::log(columns * width / (rows * height) / layout_aspect)) + 3 * empty;
        if (off < least) {
            least = off;
            best = columns;
        }
    }
    return best;
}

TopologyDrawing packed(std::vector<TopologyDrawing> const& parts, double space)
{
    double width = 1, height = 1;
    for (auto const& part : parts) {
        width = std::max(width, part.width + space);
        height = std::max(height, part.height + space);
    }
    return in_rows(parts, columns_for(static_cast<int>(parts.size()), width, height), space);
}

TopologyDrawing cells(std::vector<int> const& nodes, int columns, double cell, double space)
{
    std::vector<TopologyDrawing> parts;
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

std::vector<int> all_nodes(Topology const& topology)
{
    std::vector<int> nodes(static_cast<std::size_t>(topology.nodes()));
    std::iota(nodes.begin(), nodes.end(), 0);
    return nodes;
}

std::vector<int> nodes_to_draw(Topology const& topology, std::vector<int> const& used)
{
    auto nodes = much_larger(topology, used) ? used : all_nodes(topology);
    std::sort(nodes.begin(), nodes.end());
    return nodes;
}

}  // namespace tapioca::machine
