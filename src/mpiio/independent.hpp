// The MPI library's independent counterparts of collective accesses.
#pragma once

#include "mpiio/data_access.hpp"

namespace tapioca::mpiio {

/// What this rank moves of a collective request, by the MPI library's blocking independent call. Local. Errors have
/// been told then.
AccessOutcome access_alone(MPI_File file, DataAccess const& request);

}  // namespace tapioca::mpiio
