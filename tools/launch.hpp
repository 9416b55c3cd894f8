// Verbs that are MPI programs: how the command starts them, with the MPI that it was built with.
#pragma once

#include <string>

#include "core/result.hpp"
#include "verb.hpp"

namespace tools {

struct Launch {
    int ranks = 1;
    std::string launcher;
    std::string io;  ///< Open MPI's MPI-IO; empty: its default
    Words rest;      ///< for the program
};

/// Removes the launcher's options, -n and --mpiexec and, if `with_io`, --io, from a verb's words.
tapioca::core::Result<Launch> take_launch(Words const& words, bool with_io);
/// Checks the arguments with one process and without MPI, so that errors are reported once, then replaces itself by the
/// launcher. `program` is in the directory of this one; it knows --parse-only, and --live for a progress line on a
/// terminal.
int launch(std::string const& program, Launch const& how);
/// Replaces itself by `program`, without MPI: for its --help.
int start_alone(std::string const& program, Words const& words);
/// "Open MPI" or "MPICH".
char const* mpi_name();

}  // namespace tools
