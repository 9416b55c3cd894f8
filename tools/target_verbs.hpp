// The verbs of `tapioca target`, one .cpp each.
#pragma once

#include "sub_verbs.hpp"
#include "target_look.hpp"

namespace tools {

// Each takes the words after it, and returns the exit status.
int list_targets(Words const& words);
int drain_target(Words const& words);
int drop_target(Words const& words);

}  // namespace tools
