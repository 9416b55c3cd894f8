// Exchange with threads as ranks: agreement on errors, the direction of a step, and time-outs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/thread_ranks.hpp"

namespace tapioca::test {
namespace {

using Direction = engine::Exchange::Announcement;

TEST(Protocol, AgreesOnTheFailureOfTheLowestRankOverAndOver)
{
    on_threads(4, {}, [](ThreadRank& thread_rank, int rank) {
        for (int i = 0; i < 300; ++i) {
            core::Status local;
            // in turn: nobody fails, one rank, several ranks
            if (i % 3 == 1 && rank == i % 4) local = core::fail_errno(EIO, "turn " + std::to_string(i));
            if (i % 3 == 2 && rank >= i % 4) local = core::fail(Errc::mismatch, "rank " + std::to_string(rank));
            auto const agreed = thread_rank.exchange.agree(local, thread_rank.wait_policy);
            if (i % 3 == 0) {
                ASSERT_TRUE(agreed);
                continue;
            }
            ASSERT_FALSE(agreed);
            ASSERT_EQ(agreed.error().rank, i % 4);
            ASSERT_EQ(agreed.error().sys_errno, i % 3 == 1 ? EIO : 0);
            ASSERT_EQ(agreed.error().text, i % 3 == 1 ? "turn " + std::to_string(i) + ": Input/output error"
                                                      : "rank " + std::to_string(i % 4));
        }
    });
}

TEST(Protocol, LetsOneRankSayWhatSeveralCould)
{
    std::atomic<int> said = 0;
    on_threads(4, {}, [&](ThreadRank& thread_rank, int /*rank*/) {
        for (std::uint64_t what = 2; what < 200; what += 2) {
            if (thread_rank.exchange.first_to_say(what)) ++said;
            ASSERT_TRUE(thread_rank.exchange.agree({}, thread_rank.wait_policy));
        }
    });
    EXPECT_EQ(said, 99);
}

TEST(Protocol, CutsATextThatIsTooLongForSharedMemory)
{
    on_threads(2, {}, [](ThreadRank& thread_rank, int rank) {
        auto const agreed = thread_rank.exchange.agree(
            rank == 1 ? core::fail(Errc::io, std::string(5000, 'x')) : core::Status(), thread_rank.wait_policy);
        ASSERT_FALSE(agreed);
        EXPECT_EQ(agreed.error().text, std::string(agreed.error().text.size(), 'x'));
        EXPECT_GT(agreed.error().text.size(), 500U);
        EXPECT_LT(agreed.error().text.size(), 5000U);
    });
}

TEST(Protocol, RanksWithoutDataLearnTheDirectionFromTheOthers)
{
    on_threads(4, {}, [](ThreadRank& thread_rank, int rank) {
        for (std::uint64_t step = 0; step < 200; ++step) {
            auto const talker = static_cast<int>(step % 5);  // 4: nobody
            auto const said = step % 2 == 0 ? Direction::write : Direction::read;
            thread_rank.exchange.announce(step, rank == talker ? said : Direction::none);
            auto heard = Direction::unknown;
            engine::wait_until(thread_rank.wait_policy, "somebody", [&] {
                heard = thread_rank.exchange.announced(step);
                return heard != Direction::unknown;
            });
            ASSERT_EQ(heard, talker == 4 ? Direction::none : said) << "step " << step;
            ASSERT_TRUE(thread_rank.exchange.agree({}, thread_rank.wait_policy));
        }
    });
}

/// Ends the wait in place of the job.
struct Bitten {
    std::atomic<bool> over = false;
    std::string for_what;
    comm::Watchdog dog{[this](comm::Late const& late) {
        for_what = late.what;
        over = true;
    }};
};

TEST(Protocol, LosesPatienceWithARankThatNeverComes)
{
    on_threads(2, {}, [](ThreadRank& thread_rank, int rank) {
        if (rank == 1) return;
        std::string const file = "some file";
        comm::wait_on({0.05, 0, 2, "declare", &file});
        Bitten bitten;
        auto const began = std::chrono::steady_clock::now();
        engine::wait_until(thread_rank.wait_policy, "the other ranks to arrive", [&] { return bitten.over.load(); });
        EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(50));
        EXPECT_EQ(bitten.for_what, "the other ranks to arrive (declare, some file)");
    });
}

TEST(Protocol, LosesPatienceWithARankThatNeverFills)
{
    // Rank 0 either waits for a free buffer, or has all its data in one and waits for its I/O thread.
    for (std::uint64_t const buffersize : {64, 4096}) {
        Options options;
        options.buffersize = buffersize;
        options.nbaggr = 1;
        options.direct = Direct::never;
        std::vector<Scene> scenes{make_scene(interleave(2, 0, 24, 30), options, 0, 64)};
        auto created = target::open_file("never_filled", target::OpenMode::create);
        ASSERT_TRUE(created);
        on_threads(2, scenes, [&](ThreadRank& thread_rank, int rank) {
            if (rank == 1) return;
            struct Over {};
            comm::wait_on({0.05, 0, 2});
            Bitten bitten;
            thread_rank.wait_policy.nudge = [&] {
                if (bitten.over) throw Over{};
            };
            EXPECT_THROW((void)thread_rank.finish(scenes[0], created->get()), Over);
        });
    }
}

TEST(Watchdog, AddsUpWhatOneMarkStandsAndNothingElse)
{
    using namespace std::chrono_literals;
    Bitten bitten;
    comm::wait_on({0.2, 0, 2});
    bitten.dog.look();
    std::this_thread::sleep_for(300ms);  // no mark
    for (int i = 0; i < 3; ++i) {
        comm::Waiting const waiting("one after the other");
        std::this_thread::sleep_for(100ms);
    }
    {
        comm::Waiting waiting("somebody who gets on");
        for (int i = 0; i < 3; ++i) {
            std::this_thread::sleep_for(100ms);
            waiting.restart();
        }
        waiting.pause();  // a target that stalls
        std::this_thread::sleep_for(300ms);
        waiting.go_on();
    }
    comm::wait_on({0.2, 0, 1});
    {
        comm::Waiting const waiting("nobody, since there is nobody");
        std::this_thread::sleep_for(300ms);
    }
    comm::wait_on({0, 0, 2});
    {
        comm::Waiting const waiting("somebody, for ever");
        std::this_thread::sleep_for(300ms);
    }
    EXPECT_FALSE(bitten.over) << bitten.for_what;
    comm::wait_on({0.2, 0, 2});
    bitten.dog.look();
    comm::Waiting const outer("outer");
    comm::Waiting const inner("inner");
    std::this_thread::sleep_for(400ms);
    EXPECT_TRUE(bitten.over);
    EXPECT_EQ(bitten.for_what, "inner");
}

TEST(Watchdog, LooksSoonerWhenATimeOutGetsShorter)
{
    comm::wait_on({3600, 0, 2});
    Bitten bitten;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it has looked, and sleeps
    comm::wait_on({0.05, 0, 2});
    bitten.dog.look();
    comm::Waiting const waiting("somebody");
    for (int i = 0; i < 100 && !bitten.over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(bitten.over);
}

}  // namespace
}  // namespace tapioca::test
