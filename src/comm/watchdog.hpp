// Watchdog: ends the job when a rank has waited too long for others, wherever it waits: in a loop of ours or inside
// MPI.
//
// A thread says by what terms it waits (wait_on) and marks every wait (Waiting). The watchdog's thread looks at the
// marks now and then and adds up how long each has stood. It is the one thread that calls MPI beside the program's, and
// the one call it makes is MPI_Abort.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tapioca::comm {

/// How long a thread's waits may last, and what is told of them if they last longer.
struct Terms {
    double seconds = 0;  ///< 0: for ever
    int rank = 0;
    int size = 1;
    char const* call = "";  ///< of the library; never given back
    std::string const* file = nullptr;
};

/// Ends the job, with one line on stderr that says why. Any thread.
[[noreturn]] void end_job(std::string const& why);

struct WatchedThread;  // what a thread shows to the watchdog

/// The terms of all waits of this thread from now on. Local, and no MPI call. True if the time-out is another one.
bool wait_on(Terms const& terms);

/// This thread waits for other ranks as long as one of these lives. The innermost counts.
class Waiting {
public:
    /// `what` is never given back.
    explicit Waiting(char const* what);
    Waiting(Waiting const&) = delete;
    Waiting& operator=(Waiting const&) = delete;
    ~Waiting();

    /// Somebody has got on: the time counts anew.
    void restart();
    /// Work of this rank's own, which may take any time, until go_on().
    void pause();
    void go_on();

private:
    WatchedThread& slot_;
    char const* what_;
    char const* outer_;
};

/// A wait that has lasted too long.
struct Late {
    double seconds;
    int rank, size;
    std::string what;  ///< for what, in which call, of which file
};

class Watchdog {
public:
    /// The process's own, with a thread that lives as long as somebody holds it, and which ends the job. Null if the
    /// system has no thread left: it says so once.
    static std::shared_ptr<Watchdog> keep();
    /// MPI is about to be finalised: ends its thread, whoever holds it. Files may outlive MPI.
    static void dismiss();

    /// `bite` is called by the thread, once.
    explicit Watchdog(std::function<void(Late const&)> bite);
    Watchdog(Watchdog const&) = delete;
    Watchdog& operator=(Watchdog const&) = delete;
    ~Watchdog();

    /// Terms have changed: looks at once, lest it sleep longer than they allow.
    void look();

private:
    void run();
    void stop();

    std::function<void(Late const&)> bite_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stop_ = false;
    std::thread thread_;
};

/// Both: the terms, and the watchdog, which must be held as long as waits may come; null where nothing is to be
/// watched.
[[nodiscard]] std::shared_ptr<Watchdog> watch(Terms const& terms);

}  // namespace tapioca::comm
