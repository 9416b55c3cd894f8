// The logs that this process has of a file beside that of the handle itself: it may have opened the file more than
// once, and what is done through one handle must fit to what the logs of others have. Cheap where there are no logs.
#pragma once

#include <memory>

#include "mpiio/data_access.hpp"
#include "mpiio/opened.hpp"

namespace tapioca::mpiio {

struct ProgramFile;
class Staged;

/// Where this handle has no log and is that of this rank alone: the log of another one in which its accesses can be put
/// in order among what the ranks have logged. Else, or if there is none, null. Local.
std::shared_ptr<Staged> log_beside(ProgramFile const& program);

/// Brings what is in the logs of other handles into the file. Local. An MPI error class.
int hand_over_beside(Opened const& opened, Direction direction, bool durable);

/// The MPI library, or the engine, has done something with the file past this process's logs of it, just now: where
/// that was a write, they say until when. Local.
void passed_by(Opened const& opened, Direction direction);

}  // namespace tapioca::mpiio
