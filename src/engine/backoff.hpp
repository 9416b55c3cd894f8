// Waiting for another rank: poll, then yield, then sleep, so that all ranks make progress even if there are more ranks
// than cores.
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

/// How to wait. All waits of a communicator share one policy.
struct WaitPolicy {
    bool crowded = false;  ///< more ranks than cores: polling only keeps the awaited rank from running
    /// Lets MPI make progress, since its messages move only inside MPI calls. Returns a number that changes whenever a
    /// message has moved.
    std::function<std::uint64_t()> poll;
    /// Lets MPI make progress where ranks meet in shared memory: the awaited rank may itself wait for a message of this
    /// rank.
    std::function<void()> nudge;
    /// A number that changes whenever some rank of the node makes progress. A time-out counts from its last change.
    std::function<std::uint64_t()> activity;
};

class Backoff {
public:
    /// `slow`: the awaited event takes milliseconds. For example, it depends on a file system behind a network, whose
    /// own processes may need this core.
    explicit Backoff(bool crowded, bool slow = false)
        : turn_(crowded ? polls + yields - crowded_yields : 0), longest_nap_(slow ? 1'000'000 : 100'000)
    {
    }

    /// For a thread that must not take a core from one that computes: it sleeps from the start.
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
    /// True now and then while yielding, and always while sleeping.
    [[nodiscard]] bool may_nudge() const { return sleeping() || (turn_ >= polls && turn_ % 16 == 0); }

private:
    static void relax()
    {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    // About 20 us of polling, then about a millisecond of alternating polling and yielding. A core that sleeps is slow
    // to wake, especially in a virtual machine, but the awaited rank may need this very core.
    static constexpr int polls = 500;
    static constexpr int yields = 600;
    static constexpr int crowded_yields = 40;
    static constexpr int last = polls + yields + 64;
    int turn_;
    long longest_nap_;
};

/// Returns when `ready()` is true. The watchdog counts the time spent here, except while `ready()` itself is working.
template <class Ready>
void wait_until(WaitPolicy const& wait_policy, char const* what, Ready ready)
{
    constexpr unsigned naps_between_looks = 32;  // reading the counters of all ranks takes longer than reading one
    bool const between_nodes = static_cast<bool>(wait_policy.poll);
    auto backoff = comm::Background::now() ? Backoff::asleep() : Backoff(wait_policy.crowded, between_nodes);
    std::optional<comm::Waiting> waiting;
    std::uint64_t activity = 0;
    std::uint64_t moved = 0;
    unsigned naps = 0;
    while (!ready()) {
        // While messages arrive, more are likely to follow soon.
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
