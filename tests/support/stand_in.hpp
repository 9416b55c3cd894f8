// Building blocks of the stand-ins for functions of the C library; see faults.hpp.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>

#include <sys/types.h>

#include "support/faults.hpp"

#define EXPORTED extern "C" [[gnu::visibility("default")]]
#define CALLER __builtin_return_address(0)

namespace tapioca::faults {

/// Counts a call of the library under test, which is recognised by its caller. Returns whether it is to be faulty.
bool faulty(Op op, void const* caller);
/// The same for calls that the C++ library makes, whose caller is not the library under test.
bool faulty(Op op);
/// Whether the caller is the library under test, at work, while a fault is armed.
bool is_watched(void const* caller);

/// The fault that is armed.
Fault const& armed_fault();
/// Waits for the length of a stall.
void stall();
/// Truncates the file, as another process could.
void cut(int fd);
/// How many files and directories the library under test has created since arm().
inline std::atomic<int> made = 0;

/// A call that succeeds or fails: `call()` makes it, and -1 means failure.
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

/// A call that moves bytes: `move(bytes)` makes it.
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
