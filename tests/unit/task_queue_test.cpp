// TaskQueue: jobs in order, by its thread or by those who wait. Run under ThreadSanitizer, too.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "comm/background.hpp"
#include "machine/cores.hpp"
#include "mpiio/task_queue.hpp"

namespace {

using tapioca::mpiio::TaskQueue;

void wait_for(TaskQueue& queue, std::uint64_t number)
{
    while (!queue.done(number)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

TEST(TaskQueue, JobsAreDoneInOrderByItsThread)
{
    TaskQueue queue(tapioca::machine::allowed_cores());
    std::vector<int> done;  // by one after the other
    std::uint64_t last = 0;
    for (int i = 0; i < 100; ++i)
        last = queue.add([&done, i] {
            EXPECT_TRUE(tapioca::comm::Background::now());
            done.push_back(i);
        });
    wait_for(queue, last);
    ASSERT_EQ(done.size(), 100U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
    EXPECT_FALSE(queue.help());
}

TEST(TaskQueue, HelpersAndTheThreadNeverDoTwoAtATime)
{
    TaskQueue queue(tapioca::machine::allowed_cores());
    int at_work = 0;  // of whoever is at a job
    int done = 0;
    constexpr int jobs = 2000;
    auto const job = [&] {
        EXPECT_EQ(++at_work, 1);
        ++done;
        --at_work;
    };
    std::vector<std::thread> helpers;
    std::atomic<bool> more = true;
    for (int i = 0; i < 2; ++i)
        helpers.emplace_back([&] {
            while (more)
                if (!queue.help()) std::this_thread::yield();
        });
    std::uint64_t last = 0;
    for (int i = 0; i < jobs; ++i) last = queue.add(job);
    wait_for(queue, last);
    more = false;
    for (auto& helper : helpers) helper.join();
    EXPECT_EQ(done, jobs);
}

TEST(TaskQueue, StoppingWaitsForTheJobThatRunsAndDropsTheRest)
{
    std::atomic<int> begun = 0;
    std::atomic<bool> go_on = false;
    TaskQueue queue(tapioca::machine::allowed_cores());
    for (int i = 0; i < 3; ++i)
        queue.add([&] {
            ++begun;
            while (!go_on) std::this_thread::sleep_for(std::chrono::microseconds(50));
        });
    while (begun == 0) std::this_thread::yield();
    std::thread stopper([&] { queue.stop(); });
    while (!queue.stopped()) std::this_thread::yield();
    EXPECT_FALSE(queue.help());
    go_on = true;
    stopper.join();
    EXPECT_EQ(begun, 1);
    EXPECT_TRUE(queue.done(1));
    EXPECT_FALSE(queue.done(2));
}

}  // namespace
