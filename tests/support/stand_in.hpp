// What the stand-ins for functions of the C library are made of; see faults.hpp.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>

#include <sys/types.h>

#include "support/faults.hpp"

#define EXPORTED extern "C" [[gnu::visibility("default")]]
#define CALLER __builtin_return_address(0)

namespace tapioca::faults {

/// Whether a call of ours shall be faulty, known by where it comes from. Counts it.
bool faulty(Op op, void const* caller);
/// The same for what the C++ library calls: no caller of ours to be seen.
bool faulty(Op op);
/// Whether the caller is our code, at work, while a fault is armed.
bool is_watched(void const* caller);

/// The fault that is armed.
Fault const& armed_fault();
/// Takes as long as a stall does.
void stall();
/// Somebody else makes the file shorter.
void cut(int fd);
/// How many files and directories our code has made since arm().
inline std::atomic<int> made = 0;

/// A call that works or does not: `call()` does it, and -1 is failure.
template <class Call>
int done(bool is_faulty, Call call)
{
    if (!is_faulty) return call();
    if (armed_fault().kind == Kind::stall) {
        stall();
        return call();
    }
    errno = armed_fault().error;
    return -1;
}

/// A call that moves bytes: `move(bytes)` does it.
template <class Move>
ssize_t moved(bool is_faulty, int fd, std::size_t bytes, Move move)
{
    if (!is_faulty) return move(bytes);
    switch (armed_fault().kind) {
    case Kind::half:
    case Kind::halves: return move(bytes > 1 ? bytes / 2 : bytes);
    case Kind::nothing: return 0;
    case Kind::stall: stall(); return move(bytes);
    case Kind::truncate: cut(fd); return move(bytes);
    case Kind::interrupts: errno = EINTR; return -1;
    case Kind::error:
    case Kind::stays: break;
    }
    errno = armed_fault().error;
    return -1;
}

}  // namespace tapioca::faults
