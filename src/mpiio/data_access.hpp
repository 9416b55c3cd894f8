// Request, Outcome and Attempt: one data access of the program, and what became of it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>

#include "mpiio/call_names.hpp"

namespace tapioca::mpiio {

enum class Direction { write, read };

/// One data access of the program.
struct DataAccess {
    Call call;
    Direction direction;
    std::optional<MPI_Offset> offset;  ///< in etypes; at the individual pointer if none is given
    void* buffer;                      ///< not written to by a write
    MPI_Count count;
    MPI_Datatype type;
};

/// What became of it: not served, and then to be passed on, if it is collective on all ranks; or bytes moved; or an MPI
/// error class.
struct AccessOutcome {
    bool served = false;
    int error = MPI_SUCCESS;
    std::int64_t bytes = 0;
    bool told = false;       ///< the error is the MPI library's: its handler has been called
    int late = MPI_SUCCESS;  ///< where it is to be passed on: an error of this rank's to be told after that
};

/// What became of an attempt to serve a collective access: an outcome, or what the handle has to do, on all ranks,
/// instead.
struct Attempt {
    enum class Next {
        nothing,  ///< the outcome is there
        open,     ///< let the engine open the file, if it may, and try again
        reopen,   ///< close it for the engine, since the hints have changed, and try again
        give_up,  ///< leave the file, and this access, to the MPI library
    };
    AccessOutcome outcome = {};  ///< where something is to be done, only `late` counts
    Next next = Next::nothing;
    std::string why = {};  ///< the file is to be given up
};

}  // namespace tapioca::mpiio
