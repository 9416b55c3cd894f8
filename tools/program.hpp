// Finds out on which MPI a program, a launcher or a library is built, without running the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "launcher.hpp"

namespace tools {

enum class Family { open_mpi, mpich, unknown };

struct Mpi {
    Family family = Family::unknown;
    std::string library;  ///< its file name, such as libmpi.so.40; empty: known only from the launcher

    /// "Open MPI (libmpi.so.40)".
    [[nodiscard]] std::string describe() const;
};
/// "Open MPI", "MPICH": MPICH stands for all MPIs with its ABI.
char const* name(Family family);

struct Libraries {
    std::vector<std::string> names;    ///< file names, in the order of loading
    std::vector<std::string> missing;  ///< those that are not found
};

/// Parses what the dynamic linker prints when asked for a program's libraries.
Libraries parse_trace(std::string const& text);
/// The MPI library among them, if there is one.
std::optional<Mpi> mpi_among(Libraries const& libraries);

/// Asks the dynamic linker which libraries it would load, with `variables` set. The program does not run.
tapioca::core::Result<Libraries> libraries_of(std::string const& path, EnvironmentVariables const& variables = {});

/// The file that `word` means: with a slash, relative to `directory`; otherwise from PATH. Empty: there is none.
std::string find_program(std::string const& word, std::string const& directory, bool also_here);
/// Whether a word of a command line could be started.
bool is_program(std::string const& word);

/// The MPI of a program; nothing if it is not visible, as for scripts and programs that may load it later. A program
/// into which nothing can be loaded is an error, whose text begins with `shown`.
tapioca::core::Result<std::optional<Mpi>> mpi_of_program(std::string const& path, std::string const& shown,
                                                         EnvironmentVariables const& variables);

/// Which launcher `path` is, according to its name, its libraries, or its version text.
Launcher identify_launcher(std::string const& path);

}  // namespace tools
