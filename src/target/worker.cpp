#include "target/worker.hpp"

#include <new>
#include <system_error>

#include "core/thread.hpp"
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
    try {
        thread_ = core::start_thread("tapioca-drain", [this] { run(); });
    } catch (std::system_error const& failure) {
        return core::fail_errno(failure.code().value(), "starting the I/O thread");
    }
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
