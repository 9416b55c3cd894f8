// Starts the library's own threads.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

#include <pthread.h>

namespace tapioca::core {

/// Starts a thread that blocks all signals, since signals belong to the program. Throws std::system_error if the system
/// cannot start one.
template <class Body>
std::thread start_thread(char const* name, Body body)
{
    struct Blocked {
        Blocked()
        {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
        }
        Blocked(Blocked const&) = delete;
        Blocked& operator=(Blocked const&) = delete;
        ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        sigset_t before;
    } const blocked;
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace tapioca::core
