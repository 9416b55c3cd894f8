// DataAccess, AccessOutcome and Attempt: one data access of the program, and its outcome.
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
    std::optional<MPI_Offset> offset;  ///< in etypes; none: at the individual pointer
    void* buffer;                      ///< a write does not modify it
    MPI_Count count;
    MPI_Datatype type;
};

/// The outcome of an access: not served, and to be passed on (by all ranks, if it is collective); or the number of
/// bytes moved; or an MPI error class.
struct AccessOutcome {
    bool served = false;
    int error = MPI_SUCCESS;
    std::int64_t bytes = 0;
    bool told = false;       ///< the error is the MPI library's, whose handler has been called
    int late = MPI_SUCCESS;  ///< if the access is to be passed on: an error of this rank, to be reported afterwards
};

/// The outcome of an attempt to serve a collective access, or what the handle has to do instead, on all ranks.
struct Attempt {
    enum class Next {
        nothing,  ///< the outcome is valid
        open,     ///< open the file for the engine, if that is permitted, and try again
        reopen,   ///< close the file for the engine, because the hints have changed, and try again
        give_up,  ///< leave the file, and this access, to the MPI library
    };
    AccessOutcome outcome = {};  ///< if something else is to be done, only `late` counts
    Next next = Next::nothing;
    std::string why = {};  ///< why the file is to be given up
};

}  // namespace tapioca::mpiio
