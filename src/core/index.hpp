// Numbers of ranks and nodes, which MPI counts with int, as indices.
#pragma once

#include <cstddef>

namespace tapioca::core {

constexpr std::size_t index(int value)
{
    return static_cast<std::size_t>(value);
}

}  // namespace tapioca::core
