// Converts numbers of ranks and nodes, which MPI counts with int, to indices, and byte counts for arithmetic with
// seconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapioca::core {

constexpr std::size_t index(int value)
{
    return static_cast<std::size_t>(value);
}

inline double as_double(std::uint64_t value)
{
    return static_cast<double>(value);
}

}  // namespace tapioca::core
