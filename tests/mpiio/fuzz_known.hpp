// What the MPI libraries alone do against the standard, as far as the fuzzer met it.
#pragma once

#include "fuzz_run.hpp"

namespace fuzz {

enum class Stack { Ompio, OpenMpiRomio, Mpich };

/// Which MPI library and which of its MPI-IO parts this process runs on.
Stack stack_at_hand();
char const* name_of(Stack stack);
/// Input that is not made because this stack crashes or hangs on it.
Avoid avoided(Stack stack);

enum class What { Class, Count, Elements, Position, Shared, Values, Buffer, Beyond, Handler, File, Holes };
char const* name_of(What what);

/// The name of a documented deviation from the standard by the MPI library alone; null where it is none.
/// `seen` is what the library did on rank `me`; unused for What::File.
char const* known_deviation(Stack stack, Step const& step, int me, What what, Observed const& seen);

}  // namespace fuzz
