// PendingAccess: a nonblocking or split collective access that was begun and is not complete yet.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "mpiio/data_access.hpp"
#include "mpiio/prepared_access.hpp"

namespace tapioca::mpiio {

class NonblockingAccesses;

struct PendingAccess {
    std::string why;         ///< why it could not be served; the same on all ranks
    DataAccess request;      ///< at an explicit offset; has a copy of the datatype if the program may free its own
    PreparedAccess part;     ///< this rank's part; has no bytes if the rank takes part without data
    int late = MPI_SUCCESS;  ///< an error of this rank, from before it joined the others
    std::weak_ptr<NonblockingAccesses>
        accesses;                           ///< null once the file is closed; all accesses are settled before that
    std::uint64_t number = 0;               ///< number in the queue
    MPI_Request handle = MPI_REQUEST_NULL;  ///< the request that the program waits for, unless this is a split access
    std::atomic<bool> freed = false;        ///< the program has freed the request

    std::mutex mutex;                   ///< protects the members below, once the queue has finished this access
    AccessOutcome outcome = {};         ///< the same error on all ranks
    std::atomic<bool> settled = false;  ///< the outcome is valid, and MPI knows that the access is complete

    /// Returns once the access is settled. Waits for the other ranks to begin it.
    void finish();
    /// Settles the access if this takes no waiting.
    void poll();
};

}  // namespace tapioca::mpiio
