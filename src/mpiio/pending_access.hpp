// PendingAccess: a nonblocking or split collective access that was begun and not yet completed.
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
    std::string why;         ///< nobody could serve it; the same on all ranks
    DataAccess request;      ///< at an explicit offset; its datatype is ours where the program may have freed its own
    PreparedAccess part;     ///< this rank's; of no bytes, if it takes part without data
    int late = MPI_SUCCESS;  ///< what went wrong on this rank before it joined the others
    std::weak_ptr<NonblockingAccesses> aside;  ///< gone when the file is closed, with all of them settled before
    std::uint64_t number = 0;                  ///< in the queue
    MPI_Request handle = MPI_REQUEST_NULL;     ///< what the program waits for, if it is not a split access
    std::atomic<bool> freed = false;           ///< the program has given that back

    std::mutex mutex;                   ///< of what follows, once the queue is done with it
    AccessOutcome outcome = {};         ///< the same error on all ranks
    std::atomic<bool> settled = false;  ///< the outcome is there, and MPI knows that it is complete

    /// Returns once it is settled. Waits for the other ranks to begin it.
    void finish();
    /// Settles it, if that takes no waiting.
    void poll();
};

}  // namespace tapioca::mpiio
