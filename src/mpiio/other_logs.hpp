// The logs that this process has of a file through other handles. A process may have opened a file more than once, and
// accesses through one handle must be consistent with the logs of the others. Cheap if there are no logs.
#pragma once

#include <memory>

#include "mpiio/data_access.hpp"
#include "mpiio/open_arguments.hpp"

namespace tapioca::mpiio {

struct ProgramFile;
class Staged;

/// If this handle has no log and belongs to this rank alone: the log of another handle, in which its accesses can be
/// put in order with what the ranks have logged. Otherwise, or if there is none, null. Local.
std::shared_ptr<Staged> log_beside(ProgramFile const& program);

/// Writes the contents of the logs of other handles to the file. Local. Returns an MPI error class.
int hand_over_beside(OpenArguments const& opened, Direction direction, bool durable);

/// The MPI library, or the engine, has just accessed the file, past this process's logs of it. If it was a write, the
/// logs record the time. Local.
void passed_by(OpenArguments const& opened, Direction direction);

}  // namespace tapioca::mpiio
