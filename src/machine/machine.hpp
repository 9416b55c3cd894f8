// Machine: topology, gateways, tiers and file system, either described in a platform file or found out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "machine/storage.hpp"
#include "machine/tier/tier.hpp"
#include "machine/topology/topology.hpp"

namespace tapioca::machine {

/// The path from the nodes to the file system. Unknown if `hops` is empty.
struct Gateways {
    std::vector<int> nodes;      ///< nodes that have a link to an I/O node; empty if only distances are known
    int block = 0;               ///< nodes per block with its own gateways (a Pset); 0: all gateways serve all nodes
    Level link;                  ///< link of each gateway to the file system
    double block_bandwidth = 0;  ///< of a block's gateways together (its I/O node); 0: as their links allow
    std::vector<std::vector<int>> servers;  ///< per server of files: the gateways that lead to it; empty: all gateways
    std::vector<int> hops;                  ///< per node: distance to its gateway, plus the link from there
    std::vector<int> through;               ///< per node: its gateway, counted from 0; empty if `nodes` is empty
};

struct Machine {
    std::string name;
    std::string origin;          ///< where the description comes from, for messages
    bool links_assumed = false;  ///< latency or bandwidth of its links is assumed
    std::shared_ptr<Topology const> topology;
    Gateways gateways;
    std::vector<TierTraits> tiers;                              ///< of every node, fastest first
    std::optional<Storage> storage;                             ///< from the platform file, for planning without a file
    int cores = 0;                                              ///< of a node; 0: unknown
    std::vector<std::string> hosts;                             ///< names of the nodes in order; empty: any
    std::vector<std::pair<std::string, std::string>> settings;  ///< defaults of the site; settings in code replace them
};

/// Parses a platform file's text; `where` is its name, for messages ("mira.toml:12:3: ..."). Specified in
/// docs/platforms.md.
core::Result<Machine> parse_platform(std::string_view text, std::string const& where);
/// The text and the path of a platform file: `name` is a path, or the name of a shipped file ("theta").
struct PlatformText {
    std::string path, text;
};
core::Result<PlatformText> read_platform(std::string const& name);
/// Names of the shipped platforms.
std::vector<std::string> shipped_platforms();
/// A machine as a platform file's text, which parse_platform() turns back into the same machine.
std::string to_toml(Machine const& machine);

/// A machine of which only the hosts' names are known, and what Slurm knows: `addresses` are the hosts'
/// SLURM_TOPOLOGY_ADDR (empty: none), `topology_conf` is the text of Slurm's topology.conf (empty: none).
core::Result<Machine> describe_hosts(std::vector<std::string> const& hosts, std::vector<std::string> const& addresses,
                                     std::string const& topology_conf);
/// For each of a job's hosts, its node in the machine: by name if the machine has names, otherwise in order. Fails if a
/// host is unknown or if there are more hosts than nodes.
core::Result<std::vector<int>> find_hosts(Machine const& machine, std::vector<std::string> const& hosts);
/// The names in a list such as "n[0-3,7],login".
core::Result<std::vector<std::string>> expand_hosts(std::string_view list);

}  // namespace tapioca::machine
