// Verbs that are MPI programs: how the command starts them, through the MPI it was built with.
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

/// Takes the launcher's options, -n and --mpiexec and, if `with_io`, --io, out of a verb's words.
tapioca::core::Result<Launch> take_launch(Words const& words, bool with_io);
/// Checks the arguments with one process and no MPI, so that what is wrong with them is said once, then becomes the
/// launcher. `program` lies beside this one; it knows --parse-only, and --live for a progress line on a terminal.
int launch(std::string const& program, Launch const& how);
/// Becomes `program`, without MPI: for its --help.
int start_alone(std::string const& program, Words const& words);
/// "Open MPI" or "MPICH".
char const* mpi_name();

}  // namespace tools
