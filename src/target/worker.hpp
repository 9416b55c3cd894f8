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

/// The thread blocks all signals and runs on `cores`: the main thread's affinity is often one core, which
/// the two would have to share.
class Worker {
public:
    /// `out_of_memory` is called by the thread if a job cannot go on for that reason.
    Worker(cpu_set_t const& cores, std::function<void()> out_of_memory)
        : cores_(cores), out_of_memory_(std::move(out_of_memory))
    {
    }
    Worker(Worker const&) = delete;
    Worker& operator=(Worker const&) = delete;
    /// Waits for the job that runs.
    ~Worker();

    /// Makes the thread, if it is not there yet.
    core::Status launch();
    /// Begins `job`, after launch(); the job before must have been waited for.
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
