// Owners: where the logs of several ranks have the same bytes, whose are they?
#pragma once

#include <vector>

#include "comm/team.hpp"
#include "pattern/summary.hpp"
#include "stage/log_content.hpp"

namespace tapioca::flush {

/// Of the bytes that this rank's requests have written, those that a later epoch of another rank has as well; of equal
/// epochs the highest rank's count as the later. Collective.
std::vector<Extent> owned_by_others(comm::Team const& team, stage::LogContent& content, pattern::Summary const& total);

}  // namespace tapioca::flush
