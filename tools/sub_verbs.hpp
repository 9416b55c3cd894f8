// Verbs that have verbs of their own, such as `tapioca log list`: their help, their arguments and their messages.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <CLI/CLI.hpp>

#include "core/result.hpp"
#include "verb.hpp"

namespace tools {

struct SubVerb {
    char const* name;
    char const* arguments;
    char const* about;
    int (*run)(Words const& words);  ///< takes the words after its name, and returns the exit status
};

/// The use of a verb that has these: "list|verify [OPTIONS] PATH".
Use use_of(std::span<SubVerb const> all, std::string const& about);
/// Runs the one that the first word names. `intro` and `outro` are around the list of them in the help.
int run_sub_verb(std::string const& verb, std::span<SubVerb const> all, Words const& words, std::string const& intro,
                 std::string const& outro);
/// Returns nothing, or the exit status with which to end. `name`: such as "log list".
std::optional<int> parse_words(CLI::App& app, std::string const& name, Words const& words);
/// Prints what is wrong, and returns the status.
int fail_sub(std::string const& name, std::string const& what, int status = 2);
/// Starts an MPI program of the command's, which also works alone; under mpiexec every process becomes it.
int start_ranks(std::string const& name, std::string const& program, Words const& words);

}  // namespace tools
