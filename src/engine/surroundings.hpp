// Surroundings: what the ranks of a communicator find out together about the machine they run on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/team.hpp"
#include "core/result.hpp"
#include "machine/machine.hpp"

namespace tapioca::engine {

struct Surroundings {
    std::shared_ptr<machine::Machine const> machine;     ///< its tiers are those of all nodes together
    std::vector<int> where;                              ///< the machine's node of each of the team's nodes
    std::vector<std::vector<std::uint64_t>> free_bytes;  ///< per node and tier; 0: the node lacks it
    /// This node's part of each of the machine's tiers, and what of it holds buffers.
    struct Tier {
        std::optional<machine::TierTraits> traits;  ///< none: the node lacks it
        machine::Mapping mapping;
        std::vector<std::uint64_t> bytes;  ///< mapped on every node; the same on all ranks
        [[nodiscard]] bool holds(std::vector<std::uint64_t> const& needed) const;
    };
    std::vector<Tier> tiers;
};

/// Settings that decide what is looked for.
struct Wish {
    std::string platform;  ///< a platform file or the name of one; empty: none
    std::string tier;      ///< a tier that must be there; empty: none
    bool operator==(Wish const&) const = default;
};

/// Collective over the team. The first rank of each node looks; rank 0 reads the platform file.
core::Result<Surroundings> look_around(comm::Team const& team, Wish const& wish);

}  // namespace tapioca::engine
