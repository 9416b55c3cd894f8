// What IOR's two patterns have in common: every rank's bytes are written in many calls of one block each.
#pragma once

#include "workloads/workload.hpp"

namespace workloads {

/// Options and makers of `kind`. `spread`: the rank's bytes lie together, so that a step touches one block in each
/// rank's part of the file. Otherwise the blocks of a step lie together.
Chosen options_of_calls(CLI::App& verb, std::string const& name, bool spread);

}  // namespace workloads
