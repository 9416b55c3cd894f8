// TaskQueue: jobs that are run one after the other while the program goes on, by a thread of the queue, or by a thread
// that needs them done before the queue's thread has begun. Makes no MPI call.
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
    /// `cores`: where the thread may run, since the main thread is often bound to one core.
    explicit TaskQueue(cpu_set_t const& cores) : cores_(cores) {}
    TaskQueue(TaskQueue const&) = delete;
    TaskQueue& operator=(TaskQueue const&) = delete;
    /// Waits for the job that is running, and drops those that were not begun.
    ~TaskQueue();

    // Any thread.

    using Task = std::function<void()>;
    /// Adds a job, which must not throw, and returns its number. Waits for nobody. The first job starts the thread; if
    /// the system cannot start one, jobs are run by those who wait for them.
    std::uint64_t add(Task job);
    [[nodiscard]] bool done(std::uint64_t number) const { return done_.load(std::memory_order_acquire) >= number; }
    /// Whether some thread is running a job.
    [[nodiscard]] bool busy() const { return busy_.load(std::memory_order_acquire); }
    /// Whether jobs are run without anybody waiting for them.
    [[nodiscard]] bool has_thread() const { return has_thread_.load(std::memory_order_relaxed); }
    /// Runs the next job in the calling thread, unless another job is running or there is none. Returns true if it ran
    /// one.
    bool help();
    /// Ends the thread after the running job. Jobs that were not begun are never run.
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
