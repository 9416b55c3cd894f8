// Waiting for another rank: poll, then yield, then sleep, so that more ranks than cores still get on.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <sched.h>
#include <time.h>

namespace tapioca::engine {

/// How long to wait and what to do when that was too long. Shared by all waits of a communicator.
struct Patience {
    bool crowded = false;  ///< more ranks than cores: polling only keeps the awaited from running
    double timeout_s = 0;  ///< 0: for ever
    std::function<void(std::string const& what)> give_up;
    /// Lets MPI get on: its messages move only while it is called. A number that changes whenever one has moved.
    std::function<std::uint64_t()> poll;
    /// The same where ranks meet in shared memory: whom this rank waits for may itself wait for one of its messages.
    std::function<void()> nudge;
    /// A number that changes whenever some rank gets on: the time-out counts from its last change.
    std::function<std::uint64_t()> activity;
};

class Backoff {
public:
    /// `slow`: what is waited for takes milliseconds, such as a file system behind a network, whose own processes may
    /// need this core.
    explicit Backoff(bool crowded, bool slow = false)
        : turn_(crowded ? polls + yields - crowded_yields : 0), longest_nap_(slow ? 1'000'000 : 100'000)
    {
    }

    void pause()
    {
        if (turn_ < polls) {
            relax();
        } else if (turn_ < polls + yields) {
            for (int i = 0; i < 16; ++i) relax();
            sched_yield();
        } else {
            auto const doublings = std::min((turn_ - polls - yields) / 4, 4);
            timespec const nap{0, turn_ == last ? longest_nap_ : std::min(10'000L << doublings, 100'000L)};
            nanosleep(&nap, nullptr);
        }
        if (turn_ < last) ++turn_;
    }
    [[nodiscard]] bool sleeping() const { return turn_ >= polls + yields; }
    /// Now and then while it yields, always when it sleeps.
    [[nodiscard]] bool may_nudge() const { return sleeping() || (turn_ >= polls && turn_ % 16 == 0); }

private:
    static void relax()
    {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    // About 20 us of polling, then about a millisecond of polling and yielding in turn: a core that sleeps is slow
    // to wake, above all in a virtual machine, but the awaited rank may be waiting for this very core.
    static constexpr int polls = 500;
    static constexpr int yields = 600;
    static constexpr int crowded_yields = 40;
    static constexpr int last = polls + yields + 64;
    int turn_;
    long longest_nap_;
};

/// Returns when `ready()`; calls patience.give_up(what) after its time-out.
template <class Ready>
void wait_until(Patience const& patience, char const* what, Ready ready)
{
    bool const between_nodes = static_cast<bool>(patience.poll);
    Backoff backoff(patience.crowded, between_nodes);
    std::chrono::steady_clock::time_point quiet_since{};
    std::uint64_t last = 0;
    std::uint64_t moved = 0;
    while (!ready()) {
        // As long as messages come, more are near.
        if (between_nodes) {
            auto const now = patience.poll();
            if (std::exchange(moved, now) != now) backoff = Backoff(true, true);
        } else if (patience.nudge && backoff.may_nudge()) {
            patience.nudge();
        }
        backoff.pause();
        if (patience.timeout_s <= 0 || !backoff.sleeping()) continue;
        auto const now = std::chrono::steady_clock::now();
        auto const activity = patience.activity ? patience.activity() : 0;
        if (quiet_since == std::chrono::steady_clock::time_point{} || activity != last) quiet_since = now;
        last = activity;
        if (std::chrono::duration<double>(now - quiet_since).count() > patience.timeout_s && patience.give_up)
            patience.give_up(what);
    }
}

}  // namespace tapioca::engine
