// What a rank spent its time on.
#pragma once

#include <cstdint>

namespace tapioca::engine {

/// What a rank spent its time on, in seconds, and what it moved.
struct Times {
    double copying = 0;
    double draining = 0;  ///< of the I/O thread, or of direct accesses
    std::uint64_t bytes = 0;
    std::uint64_t rounds = 0;  ///< drained or read by this rank
    std::uint64_t calls = 0;   ///< calls of the target
};

}  // namespace tapioca::engine
