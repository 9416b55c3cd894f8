// Machine: topology, gateways, tiers and file system, described in a platform file or found out.
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

/// The way from the nodes to the file system. Unknown if `hops` is empty.
struct Gateways {
    std::vector<int> nodes;      ///< that have a link to an I/O node; none if only distances are known
    int block = 0;               ///< nodes per block with gateways of its own (a Pset); 0: all serve all
    Level link;                  ///< of each gateway to the file system
    double block_bandwidth = 0;  ///< of all gateways of a block together (its I/O node); 0: as their links allow
    std::vector<std::vector<int>> servers;  ///< per server of files: the gateways it is reached by; empty: by all
    std::vector<int> hops;                  ///< per node: to its gateway, and the link from there
    std::vector<int> through;               ///< per node: its gateway, counted from 0; empty if `nodes` is
};

struct Machine {
    std::string name;
    std::string origin;          ///< where the description comes from, for people
    bool links_assumed = false;  ///< latency or bandwidth of its links is a guess
    std::shared_ptr<Topology const> topology;
    Gateways gateways;
    std::vector<TierTraits> tiers;                              ///< of every node, fastest first
    std::optional<Storage> storage;                             ///< of the platform file, for planning without a file
    int cores = 0;                                              ///< of a node; 0: unknown
    std::vector<std::string> hosts;                             ///< names of the nodes in order; empty: any
    std::vector<std::pair<std::string, std::string>> settings;  ///< defaults of the site, weaker than code
};

/// A platform file's text; `where` is its name, for messages ("mira.toml:12:3: ..."). Specified in docs/platforms.md.
core::Result<Machine> parse_platform(std::string_view text, std::string const& where);
/// The text of a platform file and its path: `name` is a path, or one of those shipped ("theta").
struct PlatformText {
    std::string path, text;
};
core::Result<PlatformText> read_platform(std::string const& name);
/// Names of the platforms that are shipped.
std::vector<std::string> shipped_platforms();
/// A machine as a platform file's text. parse_platform() gives it back.
std::string to_toml(Machine const& machine);

/// A machine of which only its hosts' names are known, with Slurm's help where there is some: `addresses` are the
/// hosts' SLURM_TOPOLOGY_ADDR (empty: none), `topology_conf` the text of Slurm's topology.conf (empty: none).
core::Result<Machine> describe_hosts(std::vector<std::string> const& hosts, std::vector<std::string> const& addresses,
                                     std::string const& topology_conf);
/// The machine's node of each of a job's hosts: by name if the machine has names, else in order. Fails if a host is
/// unknown or there are more of them than nodes.
core::Result<std::vector<int>> find_hosts(Machine const& machine, std::vector<std::string> const& hosts);
/// "n[0-3,7],login" as names.
core::Result<std::vector<std::string>> expand_hosts(std::string_view list);

}  // namespace tapioca::machine
