// Waiting for another rank: poll, then yield, then sleep, so that more ranks than cores still get on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <sched.h>
#include <time.h>

#include "comm/background.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::engine {

/// How to wait. Shared by all waits of a communicator.
struct WaitPolicy {
    bool crowded = false;  ///< more ranks than cores: polling only keeps the awaited from running
    /// Lets MPI get on: its messages move only while it is called. A number that changes whenever one has moved.
    std::function<std::uint64_t()> poll;
    /// The same where ranks meet in shared memory: whom this rank waits for may itself wait for one of its messages.
    std::function<void()> nudge;
    /// A number that changes whenever some rank of the node gets on: a time-out counts from its last change.
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

    /// For a thread that must not take a core from whoever computes: it sleeps from the first.
    static Backoff asleep()
    {
        Backoff backoff(true, true);
        backoff.turn_ = polls + yields;
        return backoff;
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

/// Returns when `ready()`. Whoever sleeps here is seen by the watchdog, except while `ready()` is at work itself.
template <class Ready>
void wait_until(WaitPolicy const& wait_policy, char const* what, Ready ready)
{
    constexpr unsigned naps_between_looks = 32;  // looking at all ranks' counters takes longer than at one
    bool const between_nodes = static_cast<bool>(wait_policy.poll);
    auto backoff = comm::Background::now() ? Backoff::asleep() : Backoff(wait_policy.crowded, between_nodes);
    std::optional<comm::Waiting> waiting;
    std::uint64_t activity = 0;
    std::uint64_t moved = 0;
    unsigned naps = 0;
    while (!ready()) {
        // As long as messages come, more are near.
        if (between_nodes) {
            auto const now = wait_policy.poll();
            if (std::exchange(moved, now) != now) {
                backoff = Backoff(true, true);
                if (waiting) waiting->restart();
            }
        } else if (wait_policy.nudge && backoff.may_nudge()) {
            wait_policy.nudge();
        }
        if (!backoff.sleeping()) {
            backoff.pause();
            continue;
        }
        if (waiting)
            waiting->go_on();
        else
            waiting.emplace(what);
        backoff.pause();
        if (naps++ % naps_between_looks == 0 && wait_policy.activity) {
            auto const now = wait_policy.activity();
            if (std::exchange(activity, now) != now) waiting->restart();
        }
        waiting->pause();
    }
}

}  // namespace tapioca::engine
