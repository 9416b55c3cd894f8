// The shared-memory protocol with threads as ranks: random steps in a row, failures, spoiled and abandoned ones.
#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

#include "support/thread_stories.hpp"

namespace tapioca::test {
namespace {

using engine::Exchange;

/// Fails one call.
class Failing final : public Wrapper {
public:
    Failing(std::unique_ptr<target::Target> file, int at_call, int error)
        : Wrapper(std::move(file)), left_(at_call), error_(error)
    {
    }

private:
    core::Status before(char const* what) override
    {
        return left_.fetch_sub(1) == 1 ? core::fail_errno(error_, what) : core::Status();
    }
    std::atomic<int> left_;
    int error_;
};

class Threads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Protocol, Threads, testing::Values(1, 2, 3, 4, 5, 8));

TEST_P(Threads, MoveEveryByteInRandomStepsInARow)
{
    auto const ranks = GetParam();
    for (bool const crowded : {false, true}) {
        auto story = random_story(ranks, 120, "steps");
        on_threads(ranks, story.scenes, [&](ThreadRank& thread_rank, int rank) {
            thread_rank.wait_policy.crowded = crowded;
            Slow target(open_update("steps"));
            live(story, thread_rank, rank, target);
        });
        EXPECT_TRUE(contents("steps") == story.image);
    }
}

/// A step of 3 ranks with a partition each and many rounds.
Scene many_rounds(bool writing)
{
    Options options;
    options.buffersize = 64;
    options.buffers = 2;
    options.nbaggr = 3;
    options.direct = Direct::never;
    auto scene = make_scene(interleave(3, 0, 24, 30), options, 0, 64);
    scene.writing = writing;
    for (auto& variables : scene.data) variables[0].assign(variables[0].size(), std::byte{7});
    return scene;
}

TEST(Protocol, AFailureAtAnyCallIsTheSameOnEveryRankAndTheNextStepWorks)
{
    for (bool const writing : {true, false})
        for (int const call : {1, 2, 5, 11})
            for (int const failing : {0, 2}) {
                Random random(1);
                new_file("faulty", 3000, random);
                std::vector<Scene> scenes{many_rounds(writing), many_rounds(true)};
                std::atomic<int> failures = 0;
                on_threads(3, scenes, [&](ThreadRank& thread_rank, int rank) {
                    std::unique_ptr<target::Target> target = open_update("faulty");
                    if (rank == failing) target = std::make_unique<Failing>(std::move(target), call, EIO);
                    auto const status = thread_rank.finish(scenes[0], target.get());
                    if (!status) {
                        ++failures;
                        EXPECT_EQ(status.error().code, Errc::io);
                        EXPECT_EQ(status.error().sys_errno, EIO);
                        EXPECT_EQ(status.error().rank, failing);
                        EXPECT_TRUE(status.error().text.ends_with("Input/output error"));
                    }
                    target = open_update("faulty");
                    EXPECT_TRUE(thread_rank.finish(scenes[1], target.get()));
                });
                // Readers pull as they come: the failing one may never reach its n-th call.
                if (writing || failures > 0) {
                    EXPECT_EQ(failures, 3) << "call " << call << " on rank " << failing;
                }
                auto const bytes = contents("faulty");
                EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + 3 * 24 * 30,
                                        [](std::byte b) { return b == std::byte{7}; }));
            }
}

TEST(Protocol, ARankThatCannotOpenTheFileFailsTheStepForAll)
{
    for (bool const writing : {true, false}) {
        Random random(2);
        new_file("closed", 3000, random);
        std::vector<Scene> scenes{many_rounds(writing)};
        on_threads(3, scenes, [&](ThreadRank& thread_rank, int rank) {
            auto const target = open_update("closed");
            core::Status why;
            if (rank == 1) why = core::fail_errno(EMFILE, "opening");
            auto const status = thread_rank.finish(scenes[0], rank == 1 ? nullptr : target.get(), why);
            ASSERT_FALSE(status);
            EXPECT_EQ(status.error().rank, 1);
            EXPECT_EQ(status.error().sys_errno, EMFILE);
        });
    }
}

TEST(Protocol, ASpoiledRankKeepsEverythingUnwritten)
{
    for (int const spoiled : {0, 1, 2})
        for (bool const background : {false, true}) {
            Random random(3);
            auto const before = new_file("spoiled", 3000, random);
            std::vector<Scene> scenes{many_rounds(true), many_rounds(false)};
            scenes[0].spoiled_rank = spoiled;
            scenes[0].background = background;
            on_threads(3, scenes, [&](ThreadRank& thread_rank, int rank) {
                auto const target = open_update("spoiled");
                auto const status = thread_rank.finish(scenes[0], target.get());
                ASSERT_FALSE(status);
                EXPECT_EQ(status.error().rank, spoiled);
                EXPECT_EQ(status.error().code, Errc::invalid_argument);
                EXPECT_TRUE(thread_rank.finish(scenes[1], target.get())) << "reading what was there on rank " << rank;
            });
            EXPECT_TRUE(contents("spoiled") == before);
            std::uint64_t counted = 0;
            auto const& read = scenes[1];
            EXPECT_TRUE(read.data[1][0] == gather(before, 0, read.job[1][0], filler, counted));
        }
}

TEST(Protocol, ASpoiledReaderStillReadsForTheOthers)
{
    Random random(4);
    auto const image = new_file("spoiledread", 3000, random);
    std::vector<Scene> scenes{many_rounds(false)};
    scenes[0].spoiled_rank = 0;
    on_threads(3, scenes, [&](ThreadRank& thread_rank, int) {
        auto const target = open_update("spoiledread");
        EXPECT_FALSE(thread_rank.finish(scenes[0], target.get()));
    });
    std::uint64_t counted = 0;
    EXPECT_TRUE(scenes[0].data[2][0] == gather(image, 0, scenes[0].job[2][0], filler, counted));
}

TEST(Protocol, AbandonedRunsEndWithoutTheOtherRanks)
{
    for (bool const writing : {true, false})
        for (int const most_advances : {0, 1, 3}) {
            Random random(5);
            new_file("abandoned", 3000, random);
            std::vector<Scene> scenes{many_rounds(writing)};
            scenes[0].background = true;
            on_threads(3, scenes, [&](ThreadRank& thread_rank, int rank) {
                auto const target = open_update("abandoned");
                if (rank == 2) return;  // never even starts
                auto run = thread_rank.start(scenes[0], target.get());
                for (int i = 0; i < most_advances * rank; ++i) (void)run->advance();
                run.reset();
            });
        }
}

}  // namespace
}  // namespace tapioca::test
