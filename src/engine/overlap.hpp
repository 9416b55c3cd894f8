// Overlap: finds out whether two ranks declare the same bytes.
#pragma once

#include "comm/team.hpp"
#include "core/result.hpp"
#include "pattern/summary.hpp"
#include "pattern/variable.hpp"

namespace tapioca::engine {

/// Fails, naming both ranks, if two ranks' pieces overlap. The same Status on every rank. Collective.
core::Status find_overlap(comm::Team const& team, pattern::Variables const& variables, pattern::Summary const& total);

}  // namespace tapioca::engine
