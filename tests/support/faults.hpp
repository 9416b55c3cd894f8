// Faults at the C library's boundary: the executable's own pread, pwrite and friends, which do what the kernel
// may do instead of succeeding. Linked into a test, they come before the C library's.
#pragma once

#include <string>

namespace tapioca::test {

enum class Fault {
    error,      ///< fails once, with an errno
    zero,       ///< returns 0 once
    half,       ///< moves half of the bytes, always
    interrupt,  ///< fails with EINTR every other time
};

enum class Call { write, read, sync, close };

/// While alive, calls of one kind on one file of this process are faulty.
class Armed {
public:
    /// The `at`-th call, counted from 1, is the first that is faulty.
    Armed(std::string const& path, Call call, Fault fault, int at = 1, int error = 0);
    Armed(Armed const&) = delete;
    Armed& operator=(Armed const&) = delete;
    ~Armed();

    /// How many calls were spoiled.
    [[nodiscard]] int fired() const;
};

}  // namespace tapioca::test
