// Makes trees of switches from the path down to each node.
#pragma once

#include <cstddef>
#include <vector>

#include "machine/topology/kind.hpp"

namespace tapioca::machine {

/// Numbers of the switches above a node, from the top. They may be any numbers, but must differ for switches with the
/// same parent.
using Path = std::vector<int>;

/// The argument of make_fat_tree(). Nodes attached at a higher level than others get switches of their own below it,
/// one for all nodes attached to the same switch. So they stay two links apart, but are one link farther from the
/// others than in reality. Trees without a common top get one.
std::vector<std::vector<int>> number_switches(std::vector<Path> paths);

/// The same from the `switches` of a platform file's [topology], which may refer to the draft's hosts, or define them.
std::vector<std::vector<int>> read_switches(TomlTable const& topology, Draft& draft);

}  // namespace tapioca::machine
