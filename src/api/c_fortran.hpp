// What the Fortran module calls beyond tapioca.h: handles of communicators as integers, and buffers whose size and
// contiguity the compiler knows. Exported, not public.
#pragma once

#include <tapioca/tapioca.h>

#include "core/result.hpp"

namespace tapioca::c {

/// `available`: bytes of the array that was passed; -1 if it is not contiguous, the largest number if unknown.
core::Status check_array(std::int64_t available, std::int64_t count, std::int64_t type_size);

}  // namespace tapioca::c

#pragma GCC visibility push(default)
extern "C" {
int tapioca_fortran_open(MPI_Fint comm, char const* path, int mode, MPI_Fint info, TAPIOCA_File* file);
int tapioca_fortran_write(TAPIOCA_File file, int64_t offset, void* data, int64_t available, int64_t count,
                          int64_t type_size, TAPIOCA_Status* status);
int tapioca_fortran_read(TAPIOCA_File file, int64_t offset, void* data, int64_t available, int64_t count,
                         int64_t type_size, TAPIOCA_Status* status);
/// `bytes` < 0: all of the array.
int tapioca_fortran_step_write(TAPIOCA_Step step, int var, void* data, int64_t available, int64_t bytes);
int tapioca_fortran_step_read(TAPIOCA_Step step, int var, void* data, int64_t available, int64_t bytes);
}
#pragma GCC visibility pop
