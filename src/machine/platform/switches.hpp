// Trees of switches, from the way down to each node.
#pragma once

#include <cstddef>
#include <vector>

#include "machine/topology/kind.hpp"

namespace tapioca::machine {

/// Numbers of the switches above a node, from the top: any, but different for those that hang from the same.
using Path = std::vector<int>;

/// What make_fat_tree() takes. Nodes that hang higher than others get switches of their own below, one for all that
/// hang from the same: they stay two links apart, and are one link farther from the others than in truth. Trees without
/// a common top get one.
std::vector<std::vector<int>> number_switches(std::vector<Path> paths);

/// The same from the `switches` of a platform file's [topology], which may name the draft's hosts, or be where it has
/// them from.
std::vector<std::vector<int>> read_switches(Section const& topology, Draft& draft);

}  // namespace tapioca::machine
