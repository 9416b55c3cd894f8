// TaskQueue: jobs that are done one after the other while the program goes on: by a thread of its own, or by whoever
// needs them done and comes before it. No MPI.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <sched.h>

namespace tapioca::mpiio {

class TaskQueue {
public:
    /// `cores`: on which the thread may run; the main thread is often bound to one.
    explicit TaskQueue(cpu_set_t const& cores) : cores_(cores) {}
    TaskQueue(TaskQueue const&) = delete;
    TaskQueue& operator=(TaskQueue const&) = delete;
    /// Waits for the job that runs, and drops those that were not begun.
    ~TaskQueue();

    // Any thread.

    using Task = std::function<void()>;
    /// The job's number. It must not throw. Waits for nobody. The first one starts the thread; if the system has none
    /// left, jobs are done by those who wait for them.
    std::uint64_t add(Task job);
    [[nodiscard]] bool done(std::uint64_t number) const { return done_.load(std::memory_order_acquire) >= number; }
    /// Whether somebody is at a job.
    [[nodiscard]] bool busy() const { return busy_.load(std::memory_order_acquire); }
    /// Whether jobs are done without anybody waiting for them.
    [[nodiscard]] bool has_thread() const { return has_thread_.load(std::memory_order_relaxed); }
    /// Does the next job here, unless somebody is at one or there is none. True if so.
    bool help();
    /// Ends the thread, after the job that runs. What was not begun is never done.
    void stop();
    [[nodiscard]] bool stopped() const { return stop_.load(std::memory_order_acquire); }

private:
    void run();
    void do_next(std::unique_lock<std::mutex>& lock);

    cpu_set_t cores_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> jobs_;
    std::uint64_t added_ = 0;
    std::atomic<std::uint64_t> done_ = 0;
    std::atomic<bool> busy_ = false;
    std::atomic<bool> has_thread_ = false;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

}  // namespace tapioca::mpiio
