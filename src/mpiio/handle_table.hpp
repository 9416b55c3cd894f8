// The program's open files, found by their MPI handles.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "mpiio/open_arguments.hpp"

namespace tapioca::mpiio {

class Handle;
class Staged;

// These functions may be called by any thread, and are local.

std::shared_ptr<Handle> find(MPI_File file);
void enter(MPI_File file, std::shared_ptr<Handle> handle);
std::shared_ptr<Handle> remove(MPI_File file);

/// From the first call on, ends and reports what is outstanding on open files when MPI ends.
void await_finalize();
/// Whether this process has the file open through another handle.
bool has_other_handles(OpenArguments const& opened);
/// A handle has got a log, or has lost it.
void count_log();
void discount_log();
/// Whether this process has files with logs.
bool any_logs();
/// The logs of other handles than `but` through which this process has the file open. Cheap if there are no logs at
/// all.
std::vector<std::shared_ptr<Staged>> logs_of(Which const& which, OpenArguments const* but);

}  // namespace tapioca::mpiio
