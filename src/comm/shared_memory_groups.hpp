// Finds out which ranks can share memory, by trying and not by what MPI says.
#pragma once

#include <mpi.h>

namespace tapioca::comm {

/// A communicator of those ranks of `all` that share memory with this one, in the order of `all`; the caller must free
/// it. All of them have seen the same file in the directory for shared memory. A rank that has no such directory, or
/// cannot see there what another rank of the same host makes, is alone. Collective over `all`; leaves no file behind.
MPI_Comm neighbours(MPI_Comm all);

}  // namespace tapioca::comm
