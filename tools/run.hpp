// The part of `tapioca run` that other verbs use.
#pragma once

#include "verb.hpp"

namespace tools {

/// Runs the command after the options and `--` in `words`, with the drop-in library in its ranks. Returns the status.
int run_program(Words const& words);

}  // namespace tools
