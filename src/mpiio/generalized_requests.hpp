// The requests that programs get for nonblocking collective accesses. They are generalized requests of MPI, mixed with
// the program's other requests. Only these functions complete them, in a thread of the program: MPI offers a library no
// function to poll them with, and a thread of the library may not call MPI.
#pragma once

#include <mpi.h>

#include <memory>

#include "mpiio/pending_access.hpp"

namespace tapioca::mpiio {

/// Makes the request for which the program waits. Local.
void hand_out(std::shared_ptr<PendingAccess> const& pending, MPI_Request* handle);
/// The access is settled: tells MPI that the request is complete. Local.
void complete(PendingAccess& pending);

/// Whether the program has any such requests. Any thread.
bool any_handed_out();

// What MPI's functions of these names do with arrays that may contain requests of the library.

int wait(MPI_Request* request, MPI_Status* status);
int test(MPI_Request* request, int* flag, MPI_Status* status);
int waitany(int count, MPI_Request* requests, int* index, MPI_Status* status);
int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);
int waitall(int count, MPI_Request* requests, MPI_Status* statuses);
int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses);
int waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses);
int testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses);
int request_get_status(MPI_Request request, int* flag, MPI_Status* status);
int request_free(MPI_Request* request);

}  // namespace tapioca::mpiio
