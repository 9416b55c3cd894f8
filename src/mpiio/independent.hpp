// The MPI library's independent counterparts of collective accesses.
#pragma once

#include "mpiio/data_access.hpp"

namespace tapioca::mpiio {

/// Moves this rank's part of a collective request with the MPI library's blocking independent call. Local. The MPI
/// library has already reported errors.
AccessOutcome access_alone(MPI_File file, DataAccess const& request);

}  // namespace tapioca::mpiio
