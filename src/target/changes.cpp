#include "target/changes.hpp"

#include <unistd.h>

#include "core/interrupt.hpp"
#include "target/target.hpp"

namespace tapioca::target {

void Changes::note()
{
    auto const now = now_ns() + static_cast<std::uint64_t>(ahead_ns_);
    std::atomic_ref(*when_).store(now);
    // Not every change is recorded, since readers of the record allow for a second.
    constexpr std::uint64_t pause_ns = 500'000'000;
    if (durable_in_ < 0 || now - synced_ns_ < pause_ns) return;
    (void)core::uninterrupted([&] { return ::fdatasync(durable_in_); });
    synced_ns_ = now;
}

}  // namespace tapioca::target
