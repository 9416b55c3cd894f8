// Watchdog: ends the job when a rank has waited too long for others, in a loop of the library or inside MPI.
//
// A thread sets the terms of its waits (wait_on) and marks every wait (Waiting). The watchdog's thread looks at the
// marks now and then and adds up how long each has stood. It is the only thread besides the program's that calls MPI,
// and its only call is MPI_Abort.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tapioca::comm {

/// How long a thread's waits may last, and what the message says if one lasts longer.
struct Terms {
    double seconds = 0;  ///< 0: for ever
    int rank = 0;
    int size = 1;
    char const* call = "";  ///< name of the library's call; must stay valid for ever
    std::string const* file = nullptr;
};

/// Ends the job, with one line on stderr that says why. Any thread.
[[noreturn]] void end_job(std::string const& why);

struct WatchedThread;  // what a thread shows to the watchdog

/// Sets the terms of all waits of this thread from now on. Local; makes no MPI call. Returns true if the time-out has
/// changed.
bool wait_on(Terms const& terms);

/// While an object of this class exists, this thread waits for other ranks. The innermost object counts.
class Waiting {
public:
    /// `what` must stay valid for ever.
    explicit Waiting(char const* what);
    Waiting(Waiting const&) = delete;
    Waiting& operator=(Waiting const&) = delete;
    ~Waiting();

    /// Some rank has made progress: the time starts again.
    void restart();
    /// Until go_on(), this rank does work of its own, which may take any time.
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
    std::string what;  ///< what was waited for, in which call, for which file
};

class Watchdog {
public:
    /// The watchdog of this process. Its thread, which ends the job, lives as long as somebody holds the pointer. Null
    /// if the system cannot start a thread; this is reported once.
    static std::shared_ptr<Watchdog> keep();
    /// MPI is about to be finalised: ends the thread, whoever holds the watchdog, because files may outlive MPI.
    static void dismiss();

    /// The thread calls `bite` once.
    explicit Watchdog(std::function<void(Late const&)> bite);
    Watchdog(Watchdog const&) = delete;
    Watchdog& operator=(Watchdog const&) = delete;
    ~Watchdog();

    /// Makes the thread look at once after terms have changed, so that it does not sleep longer than they allow.
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

/// Sets the terms and returns the watchdog, which must be held as long as there may be waits; null if nothing is to be
/// watched.
[[nodiscard]] std::shared_ptr<Watchdog> watch(Terms const& terms);

}  // namespace tapioca::comm
