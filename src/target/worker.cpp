#include "target/worker.hpp"

#include <csignal>
#include <new>
#include <system_error>

#include "machine/cores.hpp"

namespace tapioca::target {

Worker::~Worker()
{
    {
        std::lock_guard const lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

core::Status Worker::launch()
{
    if (thread_.joinable()) return {};
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
    int error = 0;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (std::system_error const& failure) {
        error = failure.code().value();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) return core::fail_errno(error, "starting the drain thread");
    return {};
}

void Worker::start(std::function<void()> job)
{
    {
        std::lock_guard const lock(mutex_);
        job_ = std::move(job);
    }
    changed_.notify_all();
}

void Worker::wait()
{
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
}

void Worker::run()
{
    machine::run_on(cores_);
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stop_ || job_; });
        if (!job_) return;
        lock.unlock();
        try {
            job_();
        } catch (std::bad_alloc const&) {
            out_of_memory_();
        }
        lock.lock();
        job_ = nullptr;
        changed_.notify_all();
    }
}

}  // namespace tapioca::target
