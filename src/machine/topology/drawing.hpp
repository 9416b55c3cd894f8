// TopologyDrawing: where the nodes and links of a topology are drawn. Each topology makes its own, and tools/svg.cpp
// paints it.
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
        bool light;  ///< only a hint of a frame, as around the nodes of a router
    };
    struct Edge {
        double x1, y1, x2, y2;
        std::string label;
        double label_at;  ///< 0 to 1: how far along
    };
    struct Label {
        double x, y;  ///< of the middle of its base line
        std::string text;
    };
    double cell = 0, width = 0, height = 0;
    std::vector<Point> spots;
    std::vector<Frame> frames;
    std::vector<Edge> edges;
    std::vector<Label> texts;
};

/// The nodes of `topology` in the largest cells with which they fit; where it is much larger than the nodes `used`,
/// only their surroundings: switches, groups or the part of the torus that has some of them.
TopologyDrawing arrange(Topology const& topology, std::vector<int> const& used);

// What layouts are made of.

inline constexpr double layout_aspect = 1.5;  ///< width to height that a picture should have
inline constexpr double layout_caption = 17;  ///< height of a frame's label

/// Room between the cells of neighbours.
double layout_gap(double cell);
/// About what a text takes.
double layout_width(std::string const& text);
/// The spots and frames of `part`, moved.
void put(TopologyDrawing& into, TopologyDrawing const& part, double dx, double dy);
/// A frame around `inside`, with its label above the contents.
TopologyDrawing framed(TopologyDrawing const& inside, std::string const& label, double pad);
/// Parts in rows of `columns`, in slots of the size of the largest.
TopologyDrawing in_rows(std::vector<TopologyDrawing> const& parts, int columns, double space);
/// How many columns bring `count` parts of this size near the aspect; the last row is full where that costs little.
int columns_for(int count, double width, double height);
/// Parts in as many rows as bring them near the aspect.
TopologyDrawing packed(std::vector<TopologyDrawing> const& parts, double space);
/// One cell a node, in rows of `columns`.
TopologyDrawing cells(std::vector<int> const& nodes, int columns, double cell, double space);

bool much_larger(Topology const& topology, std::vector<int> const& used);
std::vector<int> all_nodes(Topology const& topology);
/// All nodes or, of a machine that is much larger, those that are used; ascending.
std::vector<int> nodes_to_draw(Topology const& topology, std::vector<int> const& used);

}  // namespace tapioca::machine
