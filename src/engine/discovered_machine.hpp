// DiscoveredMachine: what the ranks of a communicator find out together about the machine they run on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/team.hpp"
#include "core/result.hpp"
#include "engine/agreement.hpp"
#include "machine/machine.hpp"

namespace tapioca::engine {

struct DiscoveredMachine {
    std::shared_ptr<machine::Machine const> machine;     ///< its tiers are the union of all nodes' tiers
    std::vector<int> where;                              ///< for each of the team's nodes, its number in the machine
    std::vector<std::vector<std::uint64_t>> free_bytes;  ///< per node and tier; 0: the node does not have the tier
    /// This node's part of each of the machine's tiers, and the mapping that holds buffers there.
    struct NodeTier {
        std::optional<machine::TierTraits> traits;  ///< none: the node does not have the tier
        machine::TierMapping mapping;
        std::vector<std::uint64_t> bytes;  ///< bytes mapped on every node; the same on all ranks
        [[nodiscard]] bool holds(std::vector<std::uint64_t> const& needed) const;
    };
    std::vector<NodeTier> tiers;
};

/// Settings that determine what is looked for.
struct DiscoverySettings {
    std::string platform;            ///< a platform file or the name of one; empty: none
    std::string tier;                ///< a tier that must exist; empty: none
    std::string tier_as_given = {};  ///< how the user asked for that tier, for messages
    bool operator==(DiscoverySettings const& other) const { return platform == other.platform && tier == other.tier; }
};

/// Finds out about the machine. Collective over the team. The first rank of each node looks; rank 0 reads the platform
/// file.
core::Result<DiscoveredMachine> look_around(comm::Team const& team, DiscoverySettings const& wish);

/// What the ranks of a communicator have found out so far, for each combination of settings; there are few of these.
class Discovery {
public:
    /// The arguments must outlive this object.
    Discovery(comm::Team const& team, Agreement& agreement) : team_(team), agreement_(agreement) {}
    Discovery(Discovery const&) = delete;
    Discovery& operator=(Discovery const&) = delete;

    /// What was found out for these settings, or null. The same on all ranks.
    [[nodiscard]] std::shared_ptr<DiscoveredMachine> known(DiscoverySettings const& wish) const;
    /// Finds out about the machine. Collective.
    core::Result<std::shared_ptr<DiscoveredMachine>> look_around(DiscoverySettings const& wish);

private:
    comm::Team const& team_;
    Agreement& agreement_;
    std::vector<std::pair<DiscoverySettings, std::shared_ptr<DiscoveredMachine>>> known_;
};

}  // namespace tapioca::engine
