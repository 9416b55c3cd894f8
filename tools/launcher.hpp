// The command line of a launcher: where its programs are, and how it hands a variable to every rank.
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

/// Which launcher goes by this file name; `other` for mpirun and mpiexec, which are everybody's; `none` for a program.
Launcher launcher_by_name(std::string const& path);
/// Which one says this of itself when asked for its version.
Launcher launcher_by_version(std::string const& text);

/// Whether a word names a program, for options that no table knows: what follows them may be a value or the program.
using IsProgram = std::function<bool(std::string const&)>;

struct Option {
    std::string name;                 ///< without dashes
    std::size_t at = 0;               ///< its word
    std::vector<std::string> values;  ///< none, one or two
    std::size_t last = 0;             ///< the word that ends with the last value
};

/// A program and what stands before it; with `:` between them a command has several.
struct LaunchedProgram {
    std::size_t first = 0;        ///< after the launcher's name or the colon
    std::vector<Option> options;  ///< of the launcher
    std::size_t starts = 0;       ///< what the launcher starts: the program or a wrapper, such as env
    std::size_t program = 0;      ///< behind all wrappers that are known
    std::size_t end = 0;
    std::vector<std::size_t> preloads;  ///< words LD_PRELOAD=... of env
    bool cleared = false;               ///< by env -i
    std::string directory;              ///< where it is started; empty: here
    std::string library_path;           ///< LD_LIBRARY_PATH that the command sets for it

    [[nodiscard]] bool has_program() const { return program < end; }
};

struct Command {
    Words words;
    std::size_t launcher = 0;  ///< its word; words.size() without one
    Launcher kind = Launcher::none;
    std::vector<LaunchedProgram> parts;
    std::string preload;           ///< LD_PRELOAD that an env before the launcher sets
    std::string exported = "ALL";  ///< what srun gives the ranks where no option says it
};

/// The word behind env, nice and the like: the launcher, or the program where there is none.
std::size_t behind_wrappers(Words const& words, IsProgram const& is_program);

/// Local. `launcher` is what words[behind_wrappers()] is.
tapioca::core::Result<Command> read_command(Words const& words, Launcher launcher, IsProgram const& is_program);

using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

struct PreloadedLaunch {
    EnvironmentVariables environment;  ///< to be set for the launcher itself
    Words words;
};

/// The command that puts `library` before what LD_PRELOAD holds in every rank: in the launcher's own environment
/// (`preload`) or in its options. `settings` are TAPIOCA_* variables that are set.
PreloadedLaunch with_library(Command const& command, std::string const& library, std::string const& preload,
                             EnvironmentVariables const& settings);

}  // namespace tools
