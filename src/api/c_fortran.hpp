// What the Fortran module calls beyond tapioca.h: handles of communicators as integers, and buffers whose size and
// contiguity the compiler knows. Exported, not public.
#pragma once

#include <tapioca/tapioca.h>

#include "api/c_face.hpp"
#include "api/fortran_array.h"

namespace tapioca::c {

/// Where the bytes of an array lie that was passed: its first `bytes`, or all of them if that is negative. Of an array
/// that is not contiguous, it must be all.
SuppliedMemory memory_of(tapioca_fortran_array const& array, std::int64_t bytes);
/// 0 for numbers that cannot be right, which no declared variable has.
std::int64_t bytes_of(std::int64_t count, std::int64_t type_size);

}  // namespace tapioca::c

#pragma GCC visibility push(default)
extern "C" {
int tapioca_fortran_open(MPI_Fint comm, char const* path, int mode, MPI_Fint info, TAPIOCA_File* file);
int tapioca_fortran_write(TAPIOCA_File file, int64_t offset, tapioca_fortran_array const* data, int64_t count,
                          int64_t type_size, TAPIOCA_Status* status);
int tapioca_fortran_read(TAPIOCA_File file, int64_t offset, tapioca_fortran_array const* data, int64_t count,
                         int64_t type_size, TAPIOCA_Status* status);
/// `bytes` < 0: all of the array.
int tapioca_fortran_step_write(TAPIOCA_Step step, int var, tapioca_fortran_array const* data, int64_t bytes);
int tapioca_fortran_step_read(TAPIOCA_Step step, int var, tapioca_fortran_array const* data, int64_t bytes);
}
#pragma GCC visibility pop
