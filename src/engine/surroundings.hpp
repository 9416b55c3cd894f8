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
    std::shared_ptr<machine::Machine const> machine;       ///< its tiers are those of all nodes together
    std::vector<int> where;                                ///< the machine's node of each of the team's nodes
    std::vector<std::vector<std::uint64_t>> free_bytes;    ///< per node and tier; 0: the node lacks it
    std::vector<std::optional<machine::TierTraits>> mine;  ///< this node's tiers, as the machine counts them
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
