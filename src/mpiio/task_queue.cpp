#include "mpiio/task_queue.hpp"

#include <chrono>
#include <system_error>
#include <utility>

#include "comm/background.hpp"
#include "comm/watchdog.hpp"
#include "core/thread.hpp"
#include "machine/cores.hpp"

namespace tapioca::mpiio {

namespace {

constexpr std::chrono::microseconds head_start(100);

}  // namespace

TaskQueue::~TaskQueue()
{
    stop();
}

void TaskQueue::stop()
{
    {
        std::lock_guard const lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    has_thread_ = false;
}

std::uint64_t TaskQueue::add(Task job)
{
    std::lock_guard const lock(mutex_);
    jobs_.push_back(std::move(job));
    if (!thread_.joinable() && !stop_) try {
            thread_ = core::start_thread("tapioca-nonblck", [this] { run(); });
            has_thread_ = true;
        } catch (std::system_error const&) {  // as in has_thread()
        }
    changed_.notify_all();
    return ++added_;
}

/// @pre there is a job, and no thread is running one
void TaskQueue::do_next(std::unique_lock<std::mutex>& lock)
{
    auto const job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    lock.lock();
    done_.fetch_add(1, std::memory_order_release);
    busy_ = false;
    changed_.notify_all();
}

bool TaskQueue::help()
{
    std::unique_lock lock(mutex_);
    if (busy_ || jobs_.empty() || stop_) return false;
    do_next(lock);
    return true;
}

void TaskQueue::run()
{
    comm::Background const background;
    (void)comm::wait_on({});  // without a time-out
    machine::run_on(cores_);
    machine::take_short_turns();
    std::unique_lock lock(mutex_);
    auto const free = [this] { return !busy_ && !jobs_.empty(); };
    while (!stop_) {
        if (!free()) {
            changed_.wait(lock, [&] { return stop_ || free(); });
            // A program that waits for the job at once does it faster, because it is awake and needs no second core.
            changed_.wait_for(lock, head_start, [&] { return stop_ || !free(); });
        }
        if (!stop_ && free()) do_next(lock);
    }
}

}  // namespace tapioca::mpiio
