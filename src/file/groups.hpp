// Groups: which ranks share a subfile.
#pragma once

#include <string>
#include <vector>

#include "comm/team.hpp"
#include "core/result.hpp"
#include "engine/discovered_machine.hpp"

namespace tapioca::file {

struct Groups {
    int count = 1;
    std::vector<int> of_rank;  ///< the group of every rank; groups are numbered in the order of their first ranks
};

/// The groups that the setting `subfile` asks for. Fails if the machine does not have what groups are to be formed by.
/// Local; the same on all ranks.
core::Result<Groups> groups_of(std::string const& layout, comm::Team const& team,
                               engine::DiscoveredMachine const& around);
/// Whether no group has ranks of several nodes. Local; the same on all ranks.
bool within_nodes(Groups const& groups, comm::Team const& team);

}  // namespace tapioca::file
