// Exchange with threads as ranks: agreeing on errors, learning a step's direction, and losing patience.
#include <gtest/gtest.h>

#include "support/thread_ranks.hpp"

namespace tapioca::test {
namespace {

using Direction = engine::Exchange::Direction;

TEST(Protocol, AgreesOnTheFailureOfTheLowestRankOverAndOver)
{
    on_threads(4, {}, [](Seat& seat, int rank) {
        for (int i = 0; i < 300; ++i) {
            core::Status local;
            // in turn: nobody fails, one rank, several ranks
            if (i % 3 == 1 && rank == i % 4) local = core::fail_errno(EIO, "turn " + std::to_string(i));
            if (i % 3 == 2 && rank >= i % 4) local = core::fail(Errc::mismatch, "rank " + std::to_string(rank));
            auto const agreed = seat.exchange.agree(local, seat.patience);
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

TEST(Protocol, CutsATextThatIsTooLongForSharedMemory)
{
    on_threads(2, {}, [](Seat& seat, int rank) {
        auto const agreed = seat.exchange.agree(
            rank == 1 ? core::fail(Errc::io, std::string(5000, 'x')) : core::Status(), seat.patience);
        ASSERT_FALSE(agreed);
        EXPECT_EQ(agreed.error().text, std::string(agreed.error().text.size(), 'x'));
        EXPECT_GT(agreed.error().text.size(), 500U);
        EXPECT_LT(agreed.error().text.size(), 5000U);
    });
}

TEST(Protocol, RanksWithoutDataLearnTheDirectionFromTheOthers)
{
    on_threads(4, {}, [](Seat& seat, int rank) {
        for (std::uint64_t step = 0; step < 200; ++step) {
            auto const talker = static_cast<int>(step % 5);  // 4: nobody
            auto const said = step % 2 == 0 ? Direction::write : Direction::read;
            seat.exchange.announce(step, rank == talker ? said : Direction::none);
            auto heard = Direction::unknown;
            engine::wait_until(seat.patience, "somebody", [&] {
                heard = seat.exchange.announced(step);
                return heard != Direction::unknown;
            });
            ASSERT_EQ(heard, talker == 4 ? Direction::none : said) << "step " << step;
            ASSERT_TRUE(seat.exchange.agree({}, seat.patience));
        }
    });
}

struct GaveUp {};

TEST(Protocol, LosesPatienceWithARankThatNeverComes)
{
    on_threads(2, {}, [](Seat& seat, int rank) {
        if (rank == 1) return;
        seat.patience.timeout_s = 0.05;
        std::string for_what;
        seat.patience.give_up = [&](std::string const& what) {
            for_what = what;
            throw GaveUp{};
        };
        EXPECT_THROW((void)seat.exchange.agree({}, seat.patience), GaveUp);
        EXPECT_NE(for_what.find("other ranks"), std::string::npos) << for_what;
    });
}

TEST(Protocol, LosesPatienceWithARankThatNeverFills)
{
    // Rank 0 either waits for a free buffer, or has all its data in one and waits for its drain thread.
    for (std::uint64_t const buffersize : {64, 4096}) {
        Options options;
        options.buffersize = buffersize;
        options.nbaggr = 1;
        options.direct = Direct::never;
        std::vector<Scene> scenes{make_scene(interleave(2, 0, 24, 30), options, 0, 64)};
        auto created = target::open_file("never_filled", target::Access::create);
        ASSERT_TRUE(created);
        on_threads(2, scenes, [&](Seat& seat, int rank) {
            if (rank == 1) return;
            seat.patience.timeout_s = 0.05;
            seat.patience.give_up = [](std::string const&) { throw GaveUp{}; };
            EXPECT_THROW((void)seat.finish(scenes[0], created->get()), GaveUp);
        });
    }
}

}  // namespace
}  // namespace tapioca::test
