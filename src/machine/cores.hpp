// The processor cores a thread may run on.
#pragma once

#include <sched.h>

namespace tapioca::machine {

/// Of the calling thread. All of the machine's if the system does not tell.
cpu_set_t allowed_cores();

/// Lets the calling thread run on all of `cores`. Failure leaves it where it was, which is harmless.
void run_on(cpu_set_t const& cores);

/// Asks for short turns for the calling thread, which Linux 6.12 and later grants soon after it wakes, also on a core
/// that somebody else keeps busy. For threads that sleep most of the time.
void take_short_turns();

}  // namespace tapioca::machine
