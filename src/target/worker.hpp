// Worker: the I/O thread. Runs one job at a time beside the main thread and never calls MPI.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <sched.h>

#include "core/result.hpp"

namespace tapioca::target {

/// The thread blocks all signals and may run on `cores`, because the main thread is often bound to one core, which the
/// two would have to share.
class Worker {
public:
    /// The thread calls `out_of_memory` if a job cannot continue for that reason.
    Worker(cpu_set_t const& cores, std::function<void()> out_of_memory)
        : cores_(cores), out_of_memory_(std::move(out_of_memory))
    {
    }
    Worker(Worker const&) = delete;
    Worker& operator=(Worker const&) = delete;
    /// Waits for the job that is running.
    ~Worker();

    /// Makes the thread, unless it exists.
    core::Status launch();
    /// Starts `job`. launch() must have been called, and the previous job must have been waited for.
    void start(std::function<void()> job);
    /// Returns when the job is done. Cheap if there is none.
    void wait();

private:
    void run();

    cpu_set_t cores_;
    std::function<void()> out_of_memory_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> job_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace tapioca::target
