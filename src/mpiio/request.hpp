// Request and Outcome: one data access of the program, and what became of it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

#include "mpiio/calls.hpp"

namespace tapioca::mpiio {

enum class Direction { write, read };

/// One data access of the program.
struct Request {
    Call call;
    Direction direction;
    std::optional<MPI_Offset> offset;  ///< in etypes; at the individual pointer if none is given
    void* buffer;                      ///< not written to by a write
    MPI_Count count;
    MPI_Datatype type;
};

/// What became of it: not served, and then to be passed on, if it is collective on all ranks; or bytes moved; or an MPI
/// error class.
struct Outcome {
    bool served = false;
    int error = MPI_SUCCESS;
    std::int64_t bytes = 0;
    bool told = false;       ///< the error is the MPI library's: its handler has been called
    int late = MPI_SUCCESS;  ///< where it is to be passed on: an error of this rank's to be told after that
};

}  // namespace tapioca::mpiio
