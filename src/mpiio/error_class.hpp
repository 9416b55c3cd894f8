// MPI's error classes for our errors.
#pragma once

#include <tapioca/tapioca.hpp>

#include "core/result.hpp"

namespace tapioca::mpiio {

int class_of(Error const& error);
int class_of(core::Failure const& failure);
/// MPI_SUCCESS if nothing went wrong.
int class_of(core::Status const& status);

}  // namespace tapioca::mpiio
