// The results that the program gets for a call.
#pragma once

#include <mpi.h>

#include "mpiio/data_access.hpp"

namespace tapioca::mpiio {

/// Makes a status say that an access moved this many bytes.
void fill(MPI_Status* status, std::int64_t bytes);

/// Calls the file's error handler if `error` is an error, and returns it.
int raise(MPI_File file, int error);

/// The same for a call that has no file, because it is not open.
int raise_unopened(MPI_Comm comm, int error);

/// The result of an access that was served, through the file's error handler.
int answer(MPI_File file, AccessOutcome const& outcome, MPI_Status* status);

/// The result of a nonblocking access that was served: a completed request.
int answer_later(MPI_File file, AccessOutcome const& outcome, MPI_Request* request);

}  // namespace tapioca::mpiio
