// The processor cores a thread may run on.
#pragma once

#include <sched.h>

namespace tapioca::machine {

/// The cores of the calling thread; all of the machine's if the system does not tell.
cpu_set_t allowed_cores();

/// Lets the calling thread run on all of `cores`. If this fails, the thread stays where it was, which is harmless.
void run_on(cpu_set_t const& cores);

/// Asks for short time slices for the calling thread. Linux 6.12 and later then lets it run soon after it wakes, even
/// on a busy core. For threads that sleep most of the time.
void take_short_turns();

}  // namespace tapioca::machine
