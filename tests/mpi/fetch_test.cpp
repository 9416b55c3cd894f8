// Fetching: every rank gets the right bytes from the ranks that can read them, in few reads and messages, and the same
// failure as all others.
#include <cstring>
#include <new>
#include <random>

#include "engine/fetch.hpp"
#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

using engine::FetchCounts;
using engine::FetchPiece;

constexpr std::int64_t KiB = 1024;
constexpr std::int64_t MiB = 1024 * KiB;

int ranks_per_node()
{
    auto const* const text = std::getenv("TAPIOCA_RANKS_PER_NODE");
    return text ? std::atoi(text) : 0;
}

std::byte stored(int server, std::uint64_t source, std::int64_t position)
{
    auto const block = static_cast<std::uint64_t>(position / 256) * 0x9e3779b97f4a7c15U;
    return static_cast<std::byte>((block >> 56) ^ static_cast<std::uint64_t>(position) ^ (source * 29) ^
                                  static_cast<std::uint64_t>(server * 71));
}

/// The sources of this rank, which exist in no file.
core::Status read_stored(std::uint64_t source, std::int64_t position, std::span<std::byte> to)
{
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = stored(rank(), source, position + static_cast<std::int64_t>(i));
    return {};
}

class Fetch : public testing::Test {
protected:
    void SetUp() override { open(); }
    void TearDown() override
    {
        session.reset();
        MPI_Comm_free(&comm);
    }
    void open()
    {
        if (comm == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        session = *engine::Session::of(comm, ranks_per_node());
    }
    /// Adds a piece with memory of its own.
    void want(int server, std::uint64_t source, std::int64_t position, std::int64_t length)
    {
        memory.emplace_back(static_cast<std::size_t>(length), std::byte{0xaa});
        pieces.push_back({server, source, position, length, memory.back().data()});
    }
    /// Collective.
    core::Status fetch(core::Status local = {}, engine::ReadSource const& read = read_stored)
    {
        counts = {};
        return engine::fetch(*session, std::move(local), pieces, read, &counts);
    }
    [[nodiscard]] bool all_right() const
    {
        for (auto const& piece : pieces)
            for (std::int64_t i = 0; i < piece.length; ++i)
                if (piece.to[i] != stored(piece.server, piece.source, piece.position + i)) return false;
        return true;
    }
    [[nodiscard]] static int next() { return (rank() + 1) % ranks(); }

    MPI_Comm comm = MPI_COMM_NULL;
    std::shared_ptr<engine::Session> session;
    std::vector<std::vector<std::byte>> memory;
    std::vector<FetchPiece> pieces;
    FetchCounts counts;
};

TEST_F(Fetch, AnyPiecesOfAnyRanks)
{
    std::mt19937_64 random(17 + static_cast<unsigned>(rank()));
    auto const below = [&](std::int64_t limit) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    for (int round = 0; round < 25; ++round) {
        memory.clear();
        pieces.clear();
        auto const count = below(3) == 0 ? 0 : below(300);
        std::int64_t position = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            auto const length = 1 + (below(50) == 0 ? below(3 * MiB) : below(6) == 0 ? below(100 * KiB) : below(64));
            position = below(3) == 0 ? below(20 * MiB) : position + below(4) * below(3000);
            want(static_cast<int>(below(ranks())), static_cast<std::uint64_t>(below(3)), position, length);
            position += length;
        }
        ASSERT_TRUE(fetch());
        ASSERT_TRUE(on_all_ranks(all_right())) << "in round " << round;
    }
}

TEST_F(Fetch, WithoutNeedForOthersNothingIsSent)
{
    want(rank(), 4, 100, 10);
    want(rank(), 4, 110, 3 * MiB);
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
    EXPECT_EQ(counts.messages, 0U);
    EXPECT_EQ(counts.own_bytes, static_cast<std::uint64_t>(10 + 3 * MiB));
    pieces.clear();
    ASSERT_TRUE(fetch());
    EXPECT_EQ(counts.reads, 0U);
}

TEST_F(Fetch, SmallPiecesThatLieCloseTogetherTakeFewReads)
{
    std::vector<std::byte> wanted(20000 * 8);
    for (std::int64_t i = 0; i < 20000; ++i) pieces.push_back({next(), 1, i * 80, 8, wanted.data() + i * 8});
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
    EXPECT_LE(counts.reads, 10U);
    EXPECT_LE(counts.messages, 10U);
}

TEST_F(Fetch, PiecesThatAreContiguousAreOne)
{
    std::vector<std::byte> wanted(MiB);
    for (std::int64_t i = MiB / 64; i-- > 0;) pieces.push_back({next(), 1, 5 + i * 64, 64, wanted.data() + i * 64});
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
    EXPECT_EQ(counts.reads, 1U);
}

TEST_F(Fetch, BytesThatAreWantedTwiceComeTwice)
{
    for (int i = 0; i < 10; ++i) {
        want(next(), 1, 1000, 50);
        want(next(), 1, 1020 + i, 7);
        want(next(), 1, 1000, 100 * KiB);
    }
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
}

TEST_F(Fetch, AllFromOneRankThatWantsNothing)
{
    if (rank() != 0)
        for (int i = 0; i < 12; ++i) want(0, static_cast<std::uint64_t>(i), i * MiB, MiB + i);
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
}

TEST_F(Fetch, NoReadIsLongerThanAMessage)
{
    want(next(), 1, 0, 5 * MiB + 3);
    for (int i = 0; i < 2000; ++i) want(next(), 2, i * 3 * KiB, 100);
    std::size_t longest = 0;
    ASSERT_TRUE(fetch({}, [&](std::uint64_t source, std::int64_t position, std::span<std::byte> to) {
        longest = std::max(longest, to.size());
        return read_stored(source, position, to);
    }));
    EXPECT_TRUE(all_right());
    EXPECT_LE(longest, static_cast<std::size_t>(engine::most_fetched));
}

TEST_F(Fetch, AFailedReadIsTheSameFailureOnAllRanks)
{
    for (int i = 0; i < 30; ++i) want(next(), 1, i * MiB, MiB);
    int const failing = ranks() - 1;
    auto const status = fetch({}, [&](std::uint64_t source, std::int64_t position, std::span<std::byte> to) {
        if (rank() == failing && position >= 7 * MiB) return core::Status(core::fail(Errc::io, "the disk is broken"));
        return read_stored(source, position, to);
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Errc::io);
    EXPECT_EQ(status.error().rank, failing);
    EXPECT_EQ(status.error().text, "the disk is broken");
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
}

TEST_F(Fetch, AFailureBeforeMeansThatNothingIsMoved)
{
    want(next(), 1, 0, 100);
    auto const status = fetch(rank() == 0 ? core::Status(core::fail(Errc::not_found, "no log")) : core::Status());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().rank, 0);
    EXPECT_EQ(status.error().text, "no log");
    EXPECT_EQ(counts.messages, 0U);
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
}

TEST_F(Fetch, ARankWithoutMemoryDoesNotLeaveOthersWaiting)
{
    if (ranks() == 1) return;
    for (int i = 0; i < 20; ++i) want(next(), 1, i * MiB, MiB);
    auto const status = fetch({}, [&](std::uint64_t source, std::int64_t position, std::span<std::byte> to) {
        if (last() && position == 5 * MiB) throw std::bad_alloc();
        return read_stored(source, position, to);
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Errc::memory);
    session.reset();
    barrier();
    open();
    MPI_Comm_free(&comm);
    open();
    ASSERT_TRUE(fetch());
    EXPECT_TRUE(all_right());
}

}  // namespace
}  // namespace tapioca::test
