#include "core/forks.hpp"

#include <atomic>

#include <pthread.h>

namespace tapioca::core {

namespace {

std::atomic<unsigned> count = 0;

}  // namespace

unsigned forks()
{
    static int const counted =
        ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
    (void)counted;
    return count.load(std::memory_order_relaxed);
}

}  // namespace tapioca::core
