// TopologyDrawing: where the nodes and links of a topology are drawn. Each topology makes its own drawing, and
// tools/svg.cpp paints it.
#pragma once

#include <string>
#include <vector>

#include "machine/topology/topology.hpp"

namespace tapioca::machine {

/// In pixels, from the top left.
struct TopologyDrawing {
    struct Point {
        int node;
        double x, y;  ///< of the cell's top left corner
    };
    struct Frame {
        double x, y, width, height;
        std::string label;
        bool light;  ///< a faint frame, as around the nodes of a router
    };
    struct Edge {
        double x1, y1, x2, y2;
        std::string label;
        double label_at;  ///< 0 to 1: position along the link
    };
    struct Label {
        double x, y;  ///< middle of the text's base line
        std::string text;
    };
    double cell = 0, width = 0, height = 0;
    std::vector<Point> spots;
    std::vector<Frame> frames;
    std::vector<Edge> edges;
    std::vector<Label> texts;
};

/// Draws the nodes of `topology` in the largest cells with which they fit. If the topology is much larger than the
/// nodes `used`, draws only the switches, groups or part of the torus that contain some of them.
TopologyDrawing arrange(Topology const& topology, std::vector<int> const& used);

// Building blocks of layouts.

inline constexpr double layout_aspect = 1.5;  ///< desired ratio of a picture's width to its height
inline constexpr double layout_caption = 17;  ///< height of a frame's label

/// The gap between neighbouring cells.
double layout_gap(double cell);
/// The approximate width of a text.
double layout_width(std::string const& text);
/// Adds the spots and frames of `part`, shifted.
void put(TopologyDrawing& into, TopologyDrawing const& part, double dx, double dy);
/// A frame around `inside`, with its label above the contents.
TopologyDrawing framed(TopologyDrawing const& inside, std::string const& label, double pad);
/// Parts in rows of `columns`, in slots of the size of the largest.
TopologyDrawing in_rows(std::vector<TopologyDrawing> const& parts, int columns, double space);
/// The number of columns with which `count` parts of this size come near the desired aspect; the last row is full if
/// that costs little.
int columns_for(int count, double width, double height);
/// Arranges parts in as many rows as bring them near the desired aspect.
TopologyDrawing packed(std::vector<TopologyDrawing> const& parts, double space);
/// One cell per node, in rows of `columns`.
TopologyDrawing cells(std::vector<int> const& nodes, int columns, double cell, double space);

bool much_larger(Topology const& topology, std::vector<int> const& used);
std::vector<int> all_nodes(Topology const& topology);
/// All nodes or, for a much larger machine, those that are used; ascending.
std::vector<int> nodes_to_draw(Topology const& topology, std::vector<int> const& used);

}  // namespace tapioca::machine
