// What the MPI libraries alone do against the standard, as far as the fuzzer met it. The kinds that are counted, not
// failed, are the names in known_deviation(). The input below crashes or hangs the library alone, or it loses data:
//
// | never made: MPI itself would get it, also through the library under test                                         |
// | MPICH 4.0, Open MPI 4.1 ROMIO | file types with empty blocks, with a negative lower bound or of random darrays   |
// |                               | of derived types: crash, endless loop in set_view                                |
// | MPICH 4.0                     | types freed before a nonblocking collective access is complete: crash            |
// | Open MPI 4.1 ROMIO            | nonblocking collectives of memory with gaps: crash; opens on communicators       |
// |                               | without rank 0 of the world, MPI_MODE_SEQUENTIAL: abort                          |
// | Open MPI 4.1 OMPIO            | nonblocking reads behind the end of the file: hang; of nothing: crash; accesses  |
// |                               | that the mode forbids or with a negative offset: hang; MPI_MODE_SEQUENTIAL,      |
// |                               | preallocate: wrong, then a hang; sync while a split access of another file is on:|
// |                               | an error, then a hang                                                            |
// | made for what the library under test serves; the other file gets packed memory, or the bytes without MPI         |
// | MPICH 4.0, Open MPI 4.1 ROMIO | memory types with a lower bound other than zero (MPI_BOTTOM too), types of       |
// |                               | types with set bounds or empty blocks, in memory and as file types               |
// | Open MPI 4.1 ROMIO            | memory types of derived types: crash                                             |
// | Open MPI 4.1 OMPIO            | split reads behind the end of the file, split accesses of nothing, types of size |
// |                               | zero, ranks that meet in the file                                                |
// | not made in conforming programs (conforming_maker.hpp)                                                           |
// | MPICH 4.0, Open MPI 4.1       | shared pointers of several handles of one file are mixed up                      |
// | MPICH 4.0, Open MPI 4.1 ROMIO | external32 is not converted by nonblocking and ordered reads; a nonblocking      |
// |                               | collective access puts the individual pointer back when it is complete           |
// | Open MPI 4.1 OMPIO            | sync, set_size, open, close while any access is under way: an error, then a hang;|
// |                               | collective writes return before the aggregators have written, holes too          |
#pragma once

#include "fuzz_judge.hpp"

namespace fuzz {

enum class Stack { Ompio, OpenMpiRomio, Mpich };

/// Which MPI library and which of its MPI-IO parts this process runs on.
Stack stack_at_hand();
char const* name_of(Stack stack);
/// Whether new files become sets of subfiles.
bool makes_subfiles();
/// Input that is not made because this stack crashes or hangs on it.
Avoid avoided(Stack stack);

/// The name of a documented deviation from the standard by the MPI library alone; null where it is none.
char const* known_deviation(Stack stack, Step const& step, int me, What what);
/// Whether a step may come between the start and the end of one on another file.
bool may_come_between(Stack stack, Step const& step);
/// Whether a deviation shows or not from run to run.
bool by_chance(Stack stack, Step const& step, What what);

}  // namespace fuzz
