// What the Fortran module calls in addition to tapioca.h: functions that take communicators as integers, and buffers
// whose size and contiguity the compiler knows. They are exported, but not public.
#pragma once

#include <tapioca/tapioca.h>

#include "api/c_face.hpp"
#include "api/fortran_array.h"

namespace tapioca::c {

/// Where the bytes of an array argument lie: the first `bytes` bytes, or all of them if `bytes` is negative. An array
/// that is not contiguous can only be moved as a whole.
SuppliedMemory memory_of(tapioca_fortran_array const& array, std::int64_t bytes);
/// The product of the two. It is 0 if they cannot be valid; no declared variable has such numbers.
std::int64_t bytes_of(std::int64_t count, std::int64_t type_size);

}  // namespace tapioca::c

#pragma GCC visibility push(default)
extern "C" {
int tapioca_fortran_open(MPI_Fint comm, char const* path, int mode, MPI_Fint info, TAPIOCA_File* file);
int tapioca_fortran_write(TAPIOCA_File file, int64_t offset, tapioca_fortran_array const* data, int64_t count,
                          int64_t type_size, TAPIOCA_Status* status);
int tapioca_fortran_read(TAPIOCA_File file, int64_t offset, tapioca_fortran_array const* data, int64_t count,
                         int64_t type_size, TAPIOCA_Status* status);
/// A negative `bytes` means the whole array.
int tapioca_fortran_step_write(TAPIOCA_Step step, int var, tapioca_fortran_array const* data, int64_t bytes);
int tapioca_fortran_step_read(TAPIOCA_Step step, int var, tapioca_fortran_array const* data, int64_t bytes);
}
#pragma GCC visibility pop
