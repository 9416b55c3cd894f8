// Maps the library's errors to MPI error classes.
#pragma once

#include <tapioca/tapioca.hpp>

#include "core/result.hpp"

namespace tapioca::mpiio {

int class_of(Error const& error);
int class_of(core::Failure const& failure);
/// MPI_SUCCESS if there is no error.
int class_of(core::Status const& status);

}  // namespace tapioca::mpiio
