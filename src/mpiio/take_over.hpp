// TAKE_OVER: defines a function that programs call in place of the MPI library's.
#pragma once

#include "mpiio/originals.hpp"

// NOLINTBEGIN: the names are MPI's
#define EXPORTED extern "C" [[gnu::visibility("default")]]

// Under the MPI_ name, a tool that comes after this library gets the call first; its own call of the PMPI_ name
// is then served. What the MPI library calls for itself stays there.
#define TAKE_OVER(NAME, PARAMETERS, ARGUMENTS, ...)                                                      \
    static int take_##NAME PARAMETERS                                                                    \
    {                                                                                                    \
        return __VA_ARGS__;                                                                              \
    }                                                                                                    \
    EXPORTED int PMPI_##NAME PARAMETERS                                                                  \
    {                                                                                                    \
        return Within::now() ? originals().mpi.NAME ARGUMENTS : take_##NAME ARGUMENTS;                   \
    }                                                                                                    \
    EXPORTED int MPI_##NAME PARAMETERS                                                                   \
    {                                                                                                    \
        static bool const tool = belongs_to_a_tool(reinterpret_cast<void const*>(originals().next.NAME), \
                                                   reinterpret_cast<void const*>(originals().mpi.NAME)); \
        return tool && !Within::now() ? originals().next.NAME ARGUMENTS : PMPI_##NAME ARGUMENTS;         \
    }
// NOLINTEND
