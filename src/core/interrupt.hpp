// Repeats system calls that fail with EINTR because a signal was handled while they waited.
#pragma once

#include <cerrno>

namespace tapioca::core {

/// Calls `call()` until it does not fail because of a signal.
template <class Call>
auto uninterrupted(Call call)
{
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

}  // namespace tapioca::core
