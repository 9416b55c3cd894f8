// The program's open files, found by their MPI handles.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "mpiio/opened.hpp"

namespace tapioca::mpiio {

class Handle;
class Staged;

// Any thread, all of these; local.

std::shared_ptr<Handle> find(MPI_File file);
void enter(MPI_File file, std::shared_ptr<Handle> handle);
std::shared_ptr<Handle> remove(MPI_File file);

/// What is left to say and to end of open files is done when MPI ends, from the first call on.
void await_finalize();
/// A handle has got a log, or lost it.
void count_log();
void discount_log();
/// Whether this process has files with logs.
bool any_logs();
/// The logs of handles, other than that of `but`, through which this process has the file open. Cheap if there are no
/// logs at all.
std::vector<std::shared_ptr<Staged>> logs_of(Which const& which, Opened const* but);

}  // namespace tapioca::mpiio
