// What the MPI programs behind verbs of the command have in common: their arguments, and MPI around what they do.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "core/result.hpp"

namespace recover {

/// Reads the arguments; `app` gets the option --parse-only, which only checks them. Returns the exit status with which
/// to end, if there is nothing to do.
std::optional<int> parse(CLI::App& app, int argc, char** argv);
/// Starts MPI, calls run() and ends MPI. Rank 0 prints a failure, which must be the same on all ranks. Returns the exit
/// status, which run() gives if it does not fail. `name`: of the verb, such as "tapioca log recover".
int on_all_ranks(std::string const& name, int argc, char** argv,
                 std::function<tapioca::core::Result<int>()> const& run);

}  // namespace recover
