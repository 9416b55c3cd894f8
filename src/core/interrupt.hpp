// A signal that is handled while a system call waits makes it fail with EINTR: it is made again.
#pragma once

#include <cerrno>

namespace tapioca::core {

/// `call()` again and again, until it is not a signal that made it fail.
template <class Call>
auto uninterrupted(Call call)
{
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

}  // namespace tapioca::core
