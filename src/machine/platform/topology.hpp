// The [topology] of a platform file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "machine/platform/section.hpp"
#include "machine/topology/topology.hpp"

namespace tapioca::machine {

inline constexpr int most_nodes = 1'000'000, most_hops = 1'000'000;

/// What is known while the topology is read: `hosts` may come from a tree's switches, `assumed` says that some figure
/// was not given.
struct Draft {
    std::vector<std::string> hosts;
    bool assumed = false;
};

using SharedTopology = std::shared_ptr<Topology const>;

SharedTopology read_topology(Section const& topology, Draft& draft);

}  // namespace tapioca::machine
