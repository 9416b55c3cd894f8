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
    give(true);
    thread_ = std::thread([this] {
        using namespace std::chrono_literals;
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, 250ms, [this] { return end_; })) give(false);
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

void Sign::give(bool durable)
{
    ++noted_.generation;
    // Never earlier than what is known already, whatever the clocks say.
    noted_.file.changed_ns = std::max(noted_.file.changed_ns, tapioca::target::now_ns());
    (void)stage::note(marker_, noted_, durable);
}

}  // namespace recover
