// What the program gets for a call.
#pragma once

#include <mpi.h>

#include "mpiio/data_access.hpp"

namespace tapioca::mpiio {

/// What a status says of an access that moved so many bytes.
void fill(MPI_Status* status, std::int64_t bytes);

/// Calls the file's error handler, if it is an error, and returns it.
int raise(MPI_File file, int error);

/// For an access that was served, through the file's error handler.
int answer(MPI_File file, AccessOutcome const& outcome, MPI_Status* status);

/// For a nonblocking access that was served: a request that is complete.
int answer_later(MPI_File file, AccessOutcome const& outcome, MPI_Request* request);

}  // namespace tapioca::mpiio
