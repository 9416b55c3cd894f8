// The command line of a launcher: where its programs are, and how it passes a variable to every rank.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "verb.hpp"

namespace tools {

enum class Launcher { none, open_mpi, hydra, srun, aprun, other };

/// The launcher with this file name; `other` for mpirun and mpiexec, which several MPIs use; `none` for a program.
Launcher launcher_by_name(std::string const& path);
/// The launcher that prints this text when asked for its version.
Launcher launcher_by_version(std::string const& text);

/// Whether a word names a program. Used for unknown options: the word after them may be a value or the program.
using IsProgram = std::function<bool(std::string const&)>;

struct Option {
    std::string name;                 ///< without dashes
    std::size_t at = 0;               ///< position of its word
    std::vector<std::string> values;  ///< none, one or two
    std::size_t last = 0;             ///< the word that contains the end of the last value
};

/// A program and the words before it; a command has several if there is a `:` between them.
struct LaunchedProgram {
    std::size_t first = 0;        ///< position after the launcher's name or the colon
    std::vector<Option> options;  ///< of the launcher
    std::size_t starts = 0;       ///< what the launcher starts: the program or a wrapper, such as env
    std::size_t program = 0;      ///< after all known wrappers
    std::size_t end = 0;
    std::vector<std::size_t> preloads;  ///< words LD_PRELOAD=... of env
    bool cleared = false;               ///< env -i is used
    std::string directory;              ///< where it is started; empty: the current directory
    std::string library_path;           ///< LD_LIBRARY_PATH that the command sets for it

    [[nodiscard]] bool has_program() const { return program < end; }
};

struct Command {
    Words words;
    std::size_t launcher = 0;  ///< position of its word; words.size() if there is none
    Launcher kind = Launcher::none;
    std::vector<LaunchedProgram> parts;
    std::string preload;           ///< LD_PRELOAD that an env before the launcher sets
    std::string exported = "ALL";  ///< what srun passes to the ranks if no option says it
};

/// The position after env, nice and the like: that of the launcher or, if there is none, of the program.
std::size_t behind_wrappers(Words const& words, IsProgram const& is_program);

/// Local. `launcher` is the kind of words[behind_wrappers()].
tapioca::core::Result<Command> read_command(Words const& words, Launcher launcher, IsProgram const& is_program);

using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

struct PreloadedLaunch {
    EnvironmentVariables environment;  ///< to be set for the launcher itself
    Words words;
};

/// The command that puts `library` before the contents of LD_PRELOAD in every rank: in the launcher's own environment
/// (`preload`) or in its options. `settings` are the TAPIOCA_* variables that are set.
PreloadedLaunch with_library(Command const& command, std::string const& library, std::string const& preload,
                             EnvironmentVariables const& settings);

}  // namespace tools
