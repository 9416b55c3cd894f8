// Which ranks can share memory: not what MPI says of them, but what they find when they try.
#pragma once

#include <mpi.h>

namespace tapioca::comm {

/// A communicator of those ranks of `all` that share memory with this one, in the order of `all`; the caller's to free.
/// They have all seen the same file where memory is shared. Who has no such place, or cannot see there what another
/// one of the same host makes, is alone. Collective over `all`; leaves no file behind.
MPI_Comm neighbours(MPI_Comm all);

}  // namespace tapioca::comm
