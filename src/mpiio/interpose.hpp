// INTERPOSE: defines a function that programs call in place of the MPI library's.
#pragma once

#include "mpiio/mpi_functions.hpp"

// NOLINTBEGIN: the names are MPI's
#define EXPORTED extern "C" [[gnu::visibility("default")]]

// Under the MPI_ name, a tool that is loaded after this library gets the call first; its own call of the PMPI_ name is
// then served. Calls that the MPI library makes internally stay there.
#define INTERPOSE(NAME, PARAMETERS, ARGUMENTS, ...)                                                          \
    static int take_##NAME PARAMETERS                                                                        \
    {                                                                                                        \
        return __VA_ARGS__;                                                                                  \
    }                                                                                                        \
    EXPORTED int PMPI_##NAME PARAMETERS                                                                      \
    {                                                                                                        \
        return Within::now() ? mpi_functions().mpi.NAME ARGUMENTS : take_##NAME ARGUMENTS;                   \
    }                                                                                                        \
    EXPORTED int MPI_##NAME PARAMETERS                                                                       \
    {                                                                                                        \
        static bool const tool = belongs_to_a_tool(reinterpret_cast<void const*>(mpi_functions().next.NAME), \
                                                   reinterpret_cast<void const*>(mpi_functions().mpi.NAME)); \
        return tool && !Within::now() ? mpi_functions().next.NAME ARGUMENTS : PMPI_##NAME ARGUMENTS;         \
    }
// NOLINTEND
