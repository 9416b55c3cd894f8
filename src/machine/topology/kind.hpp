// The kinds of topologies. To add a kind, write one .cpp with a Topology and its TopologyKind, and one row of rows.inc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/platform/toml_table.hpp"
#include "machine/topology/topology.hpp"

namespace tapioca::machine {

inline constexpr int most_nodes = 1'000'000, most_hops = 1'000'000;
/// The most levels of a tree, and the most dimensions of a torus.
inline constexpr std::size_t most_levels = 16;

/// What is known while the topology is being read: `hosts` may come from a tree's switches, `assumed` is set if some
/// figure was not given.
struct Draft {
    std::vector<std::string> hosts;
    bool assumed = false;
};

using SharedTopology = std::shared_ptr<Topology const>;

/// The name of a kind of topology, and how it is read; everything else is in its Topology.
struct TopologyKind {
    std::string_view name;
    std::string_view help;                        ///< text for users, as in docs/platforms.md
    std::span<std::string_view const> keys = {};  ///< keys of [topology], in addition to kind, nodes and level
    SharedTopology (*read)(TomlTable const& topology, Draft& draft);
};

/// All kinds, in the order of rows.inc.
std::span<TopologyKind const* const> topology_kinds();

/// Reads the [topology] of a platform file, of any kind.
SharedTopology read_topology(TomlTable const& topology, Draft& draft);

// What several kinds read in the same way.

/// One level for each of `names`, from [[topology.level]]; the last one given holds for the rest.
std::vector<Level> read_levels(TomlTable const& topology, std::vector<std::string> const& names, Draft& draft);
/// The product of `sizes`, which must equal `nodes` if that is given; `key` is the key of the sizes.
int multiply_up(TomlTable const& topology, std::string_view key, std::vector<int> const& sizes);

}  // namespace tapioca::machine
