#include "comm/watchdog.hpp"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <fmt/core.h>

#include <time.h>
#include <unistd.h>

#include "comm/background.hpp"
#include "core/thread.hpp"

namespace tapioca::comm {

/// Written by its thread, read by the watchdog. Slots are reused and never freed, so that the list needs no lock, which
/// a forked process could find locked.
struct WatchedThread {
    std::atomic<char const*> what = nullptr;  ///< null: the thread does not wait
    std::atomic<std::uint64_t> marks = 0;     ///< changes with every mark and every sign of life
    std::atomic<double> seconds = 0;          ///< 0: nobody to wait for, or no time-out
    std::atomic<bool> taken = true;
    WatchedThread* next = nullptr;

    std::mutex mutex;  ///< protects the members below, which seldom change
    int rank = 0, size = 1;
    char const* call = "";
    std::string file;

    // used only by the watchdog
    std::uint64_t seen = 0;
    double waited = 0;
};

namespace {

std::atomic<WatchedThread*> slots = nullptr;

WatchedThread* take_slot()
{
    for (auto* slot = slots.load(); slot; slot = slot->next)
        if (bool taken = false; slot->taken.compare_exchange_strong(taken, true)) return slot;
    auto* const slot = new WatchedThread;
    slot->next = slots.load();
    while (!slots.compare_exchange_weak(slot->next, slot)) {}
    return slot;
}

WatchedThread& my_slot()
{
    struct Holder {
        WatchedThread* const slot = take_slot();
        Holder() = default;
        Holder(Holder const&) = delete;
        Holder& operator=(Holder const&) = delete;
        ~Holder()
        {
            slot->what = nullptr;
            slot->seconds = 0;
            slot->taken = false;
        }
    };
    thread_local Holder const holder;
    return *holder.slot;
}

/// The time between two looks: a fiftieth of the time-out, so that the thread wakes rarely.
double look_every(double seconds)
{
    return std::clamp(seconds / 50, 0.005, 10.0);
}

Late late(WatchedThread& slot, char const* what)
{
    std::lock_guard const lock(slot.mutex);
    auto const where = slot.file.empty() ? std::string(slot.call) : fmt::format("{}, {}", slot.call, slot.file);
    return {slot.seconds, slot.rank, slot.size, where.empty() ? what : fmt::format("{} ({})", what, where)};
}

/// Ends this process after some seconds even if MPI_Abort hangs.
void kill_after(int seconds)
{
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    timer_t timer = {};
    itimerspec when = {};
    when.it_value.tv_sec = seconds;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_settime(timer, 0, &when, nullptr);
}

/// The watchdog of this process, as long as somebody holds it.
struct Own {
    std::mutex mutex;
    std::weak_ptr<Watchdog> dog;
    bool told = false;  ///< it was reported that there is no thread for it
};

Own& the_own()
{
    static auto& own = *new Own;  // never destroyed, because programs may end with files open
    return own;
}

void bite(Late const& late)
{
    end_job(fmt::format("rank {} of {} waited more than TAPIOCA_TIMEOUT ({:g} s) for {}", late.rank, late.size,
                        late.seconds, late.what));
}

}  // namespace

void end_job(std::string const& why)
{
    auto const line = fmt::format("tapioca: {}: aborting the job\n", why);
    (void)!::write(STDERR_FILENO, line.data(), line.size());  // whatever the program's own threads do with stderr
    kill_after(5);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // otherwise MPICH's launcher may lose the message
    MPI_Abort(MPI_COMM_WORLD, 1);  // on another communicator, MPICH waits for the missing rank
    for (;;) ::pause();
}

bool wait_on(Terms const& terms)
{
    auto& slot = my_slot();
    if (Background::now()) {
        slot.seconds.store(0, std::memory_order_relaxed);
        return false;
    }
    auto const before = slot.seconds.exchange(terms.size > 1 ? terms.seconds : 0, std::memory_order_relaxed);
    std::lock_guard const lock(slot.mutex);
    slot.rank = terms.rank;
    slot.size = terms.size;
    slot.call = terms.call;
    if (!terms.file)
        slot.file.clear();
    else if (slot.file != *terms.file)
        slot.file = *terms.file;
    return before != slot.seconds;
}

Waiting::Waiting(char const* what) : slot_(my_slot()), what_(what), outer_(slot_.what.load(std::memory_order_relaxed))
{
    restart();
    go_on();
}

Waiting::~Waiting()
{
    restart();
    slot_.what.store(outer_, std::memory_order_release);
}

void Waiting::restart()
{
    slot_.marks.store(slot_.marks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Waiting::pause()
{
    slot_.what.store(nullptr, std::memory_order_release);
}

void Waiting::go_on()
{
    slot_.what.store(what_, std::memory_order_release);
}

Watchdog::Watchdog(std::function<void(Late const&)> bite) : bite_(std::move(bite))
{
    thread_ = core::start_thread("tapioca-watch", [this] { run(); });
}

Watchdog::~Watchdog()
{
    stop();
}

void Watchdog::stop()
{
    {
        std::lock_guard const lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Watchdog::look()
{
    std::lock_guard const lock(mutex_);  // the thread sleeps, or has not looked yet
    changed_.notify_all();
}

void Watchdog::run()
{
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(mutex_);
    auto last = Clock::now();
    for (double pause = 0.01; !stop_;) {
        changed_.wait_for(lock, std::chrono::duration<double>(pause));
        auto const now = Clock::now();
        // At most twice the time between looks, because the whole job may have been stopped for a while.
        auto const passed = std::min(std::chrono::duration<double>(now - last).count(), 2 * pause);
        last = now;
        pause = look_every(1e9);
        for (auto* slot = slots.load(); slot; slot = slot->next) {
            auto const seconds = slot->seconds.load(std::memory_order_relaxed);
            auto const marks = slot->marks.load(std::memory_order_relaxed);
            auto const* const what = slot->what.load(std::memory_order_acquire);
            if (marks != slot->seen || seconds <= 0)
                slot->waited = 0;
            else if (what)
                slot->waited += passed;
            slot->seen = marks;
            if (seconds <= 0) continue;
            pause = std::min(pause, look_every(seconds));
            if (what && slot->waited > seconds) return bite_(late(*slot, what));
        }
    }
}

std::shared_ptr<Watchdog> Watchdog::keep()
{
    auto& own = the_own();
    std::lock_guard const lock(own.mutex);
    auto dog = own.dog.lock();
    if (dog || own.told) return dog;
    try {
        dog = std::make_shared<Watchdog>(bite);
    } catch (std::system_error const& error) {
        own.told = true;
        std::fprintf(stderr, "tapioca: cannot start a thread for TAPIOCA_TIMEOUT, which therefore has no effect (%s)\n",
                     error.what());
    }
    own.dog = dog;
    return dog;
}

void Watchdog::dismiss()
{
    auto& own = the_own();
    std::lock_guard const lock(own.mutex);
    if (auto const dog = own.dog.lock()) dog->stop();
}

std::shared_ptr<Watchdog> watch(Terms const& terms)
{
    bool const changed = wait_on(terms);
    auto dog = terms.seconds > 0 && terms.size > 1 ? Watchdog::keep() : nullptr;
    if (dog && changed) dog->look();
    return dog;
}

}  // namespace tapioca::comm
