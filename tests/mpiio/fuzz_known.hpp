// What the MPI libraries alone do against the standard, as far as the fuzzer met it. The kinds that are counted, not
// failed, are the names in known_deviation(). The input below crashes or hangs the library alone and is not made:
//
// | MPICH 4.0, Open MPI 4.1 ROMIO | memory types with a lower bound other than zero (MPI_BOTTOM too), and types of   |
// |                               | types with set bounds or empty blocks: crash, endless loop, lost data            |
// | the same                      | nonblocking collectives that overlap on two files: crash                         |
// | Open MPI 4.1 ROMIO            | opens on communicators without rank 0 of the world, MPI_MODE_SEQUENTIAL, darray  |
// |                               | of derived types as file type: abort                                             |
// | Open MPI 4.1 OMPIO            | nonblocking and split reads behind the end of the file: hang; of nothing: crash  |
// | the same                      | types of size zero: crash; accesses that the mode forbids or with a negative     |
// |                               | offset: hang; ranks that write the same bytes to the same place: crash;          |
// |                               | MPI_MODE_SEQUENTIAL, preallocate: wrong, then a hang                             |
#pragma once

#include "fuzz_judge.hpp"

namespace fuzz {

enum class Stack { Ompio, OpenMpiRomio, Mpich };

/// Which MPI library and which of its MPI-IO parts this process runs on.
Stack stack_at_hand();
char const* name_of(Stack stack);
/// Input that is not made because this stack crashes or hangs on it.
Avoid avoided(Stack stack);

/// The name of a documented deviation from the standard by the MPI library alone; null where it is none.
char const* known_deviation(Stack stack, Step const& step, int me, What what);
/// Whether a step may come between the start and the end of one on another file.
bool may_come_between(Stack stack, Step const& step);
/// Whether a deviation shows or not from run to run.
bool by_chance(Stack stack, Step const& step, What what);

}  // namespace fuzz
