// The MPI library's independent counterparts of collective accesses.
#pragma once

#include "mpiio/request.hpp"

namespace tapioca::mpiio {

/// What this rank moves of a collective request, by the MPI library's blocking independent call. Local. Errors have
/// been told then.
Outcome access_alone(MPI_File file, Request const& request);

}  // namespace tapioca::mpiio
