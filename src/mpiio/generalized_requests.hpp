// The requests that programs get for nonblocking collective accesses: generalized requests of MPI's, among others of
// the program's. Nothing but these functions completes them, in a thread of the program's: MPI has no way for a library
// to be asked, and a thread of ours may not call MPI.
#pragma once

#include <mpi.h>

#include <memory>

#include "mpiio/pending_access.hpp"

namespace tapioca::mpiio {

/// Makes the request that the program waits for. Local.
void hand_out(std::shared_ptr<PendingAccess> const& pending, MPI_Request* handle);
/// It is settled: MPI may say so. Local.
void complete(PendingAccess& pending);

/// Whether the program has any such requests. Any thread.
bool any_handed_out();

// What MPI's functions of these names do with arrays that may have requests of ours in them.

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
