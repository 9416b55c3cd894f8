#include "sign.hpp"

#include <algorithm>
#include <chrono>

#include "target/target.hpp"

namespace recover {

namespace stage = tapioca::stage;

Sign::Sign(stage::Descriptor const& marker, stage::Noted const& before, stage::FileFacts const& file)
    : marker_(marker), noted_{before.epoch, before.generation, stage::Noted::State::recovering, file}
{
    (void)stage::forget_others(marker);
    give();
    ahead_ns_ = stage::clock_ahead_ns(marker);
    give();
    thread_ = std::thread([this] {
        using namespace std::chrono_literals;
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, 250ms, [this] { return end_; })) give();
    });
}

Sign::~Sign()
{
    {
        std::lock_guard const lock(mutex_);
        end_ = true;
    }
    ended_.notify_all();
    thread_.join();
}

void Sign::give()
{
    ++noted_.generation;
    // Never earlier than the time that is already noted, whatever the clocks say. The note survives a crash of the
    // machine, as written data may.
    auto const now = tapioca::target::now_ns() + static_cast<std::uint64_t>(ahead_ns_);
    noted_.file.changed_ns = std::max(noted_.file.changed_ns, now);
    (void)stage::note(marker_, noted_, true);
}

}  // namespace recover
