// Draws a plan as a picture: the machine's nodes and how they are connected, which of them aggregate, and for which.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine/machine.hpp"

namespace tools {

/// Nodes of the job are indices of `nodes`, which gives their numbers in the machine.
struct Picture {
    tapioca::machine::Machine const* machine = nullptr;  ///< with a topology
    std::vector<int> nodes;
    struct Aggregator {
        int node;  ///< of the job
        std::string tier;
    };
    std::vector<Aggregator> aggregators;                   ///< one per partition
    std::vector<std::vector<std::pair<int, double>>> fed;  ///< per partition: node of the job, bytes
    std::string title;
    std::vector<std::string> facts;  ///< lines under the title
};

/// As an SVG document.
std::string draw(Picture const& picture);

}  // namespace tools
