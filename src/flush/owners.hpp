// Owners: decides to which rank bytes belong that are in the logs of several ranks.
#pragma once

#include <vector>

#include "comm/team.hpp"
#include "pattern/summary.hpp"
#include "stage/log_content.hpp"

namespace tapioca::flush {

/// Of the bytes that this rank's requests have written, those that another rank has written in a later epoch. Within
/// one epoch, a higher rank counts as later. Collective.
std::vector<Extent> owned_by_others(comm::Team const& team, stage::LogContent& content, pattern::Summary const& total);

}  // namespace tapioca::flush
