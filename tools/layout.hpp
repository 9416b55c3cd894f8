// Layout: where the nodes of a machine are drawn, by kind of topology.
#pragma once

#include <string>
#include <vector>

#include "machine/machine.hpp"

namespace tools {

/// In pixels, from the top left.
struct Layout {
    struct Spot {
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
    struct Text {
        double x, y;  ///< of the middle of its base line
        std::string text;
    };
    double cell = 0, width = 0, height = 0;
    std::vector<Spot> spots;
    std::vector<Frame> frames;
    std::vector<Edge> edges;
    std::vector<Text> texts;
};

/// Room between the cells of neighbours.
double gap(double cell);

/// The nodes of `machine`; where it is much larger than the nodes `used`, only their surroundings: switches, groups or
/// the part of the torus that has some of them.
Layout arrange(tapioca::machine::Machine const& machine, std::vector<int> const& used);

}  // namespace tools
