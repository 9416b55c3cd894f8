// What other verbs need of `tapioca run`.
#pragma once

#include "verb.hpp"

namespace tools {

/// Runs the command behind the options and `--` in `words`, with the drop-in library in its ranks. Returns the status.
int run_program(Words const& words);

}  // namespace tools
