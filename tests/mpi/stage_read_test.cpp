// Collective reads of staged files: what is in the logs of all ranks is read from there, and the file stays as it is,
// unless it is not certain which bytes count.
#include <cstring>
#include <filesystem>

#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t block = 3000;

class StageRead : public testing::Test {
protected:
    void SetUp() override
    {
        path = scratch.path("file");
        stage = fs::absolute(scratch.path("stage")).string();
        if (rank() == 0) fs::create_directory(stage);
        barrier();
    }
    [[nodiscard]] File open(Mode mode = Mode::create) const
    {
        Options options;
        options.stage = "ssd:" + stage;
        return File::open(MPI_COMM_WORLD, path, mode, options);
    }
    /// What the ranks' data of this number is.
    static Bytes data(int of_rank, int number, std::int64_t bytes = block)
    {
        return stream(static_cast<std::uint64_t>(100 * number + of_rank), static_cast<std::size_t>(bytes));
    }
    /// Every rank writes a block; `shift`: how many blocks behind its own place.
    static void write(File& file, int number, std::int64_t at, std::int64_t bytes = block)
    {
        Pattern pattern;
        auto const variable = pattern.add(std::vector<Extent>{{at, bytes}});
        auto step = file.declare(pattern);
        auto const mine = data(rank(), number, bytes);
        step.write(variable, mine);
        step.finish();
    }
    struct Read {
        Bytes bytes;
        std::uint64_t received;
    };
    static Read read(File& file, std::int64_t at, std::int64_t bytes)
    {
        Pattern pattern;
        auto const variable = pattern.add(std::vector<Extent>{{at, bytes}});
        auto step = file.declare(pattern);
        Bytes result(static_cast<std::size_t>(bytes), std::byte{0xA5});
        step.read(variable, result);
        step.finish();
        return {std::move(result), step.received(variable)};
    }
    /// The blocks of all ranks, in the order of the ranks.
    static Bytes all_blocks(int number)
    {
        Bytes all;
        for (int r = 0; r < ranks(); ++r) {
            auto const one = data(r, number);
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    }
    /// What is in the file itself. Collective.
    [[nodiscard]] Bytes in_file() const
    {
        barrier();
        auto bytes = contents(path);
        barrier();
        return bytes;
    }
    [[nodiscard]] static std::int64_t whole() { return ranks() * block; }

    Scratch scratch;
    std::string path;
    std::string stage;
};

TEST_F(StageRead, WhatIsLoggedIsReadFromTheLogsOfAllRanks)
{
    auto file = open();
    write(file, 1, rank() * block);
    for (int turn = 0; turn < 3; ++turn) {
        auto const all = read(file, 0, whole());
        EXPECT_TRUE(all.bytes == all_blocks(1));
        EXPECT_EQ(all.received, static_cast<std::uint64_t>(whole()));
        auto const other = (rank() + 1) % ranks();
        EXPECT_TRUE(read(file, other * block, block).bytes == data(other, 1));
    }
    EXPECT_TRUE(in_file().empty());
    file.close();
    EXPECT_TRUE(in_file() == all_blocks(1));
}

TEST_F(StageRead, LaterCallsWinWhicheverRankMadeThem)
{
    auto file = open();
    write(file, 1, rank() * block);
    write(file, 2, (ranks() - 1 - rank()) * block);
    write(file, 3, rank() * block + 100, 500);
    Bytes expected(static_cast<std::size_t>(whole()));
    for (int r = 0; r < ranks(); ++r) {
        auto const later = data(ranks() - 1 - r, 2);
        std::copy(later.begin(), later.end(), expected.begin() + r * block);
        auto const last = data(r, 3, 500);
        std::copy(last.begin(), last.end(), expected.begin() + r * block + 100);
    }
    EXPECT_TRUE(read(file, 0, whole()).bytes == expected);
    EXPECT_TRUE(in_file().empty());
    file.close();
    EXPECT_TRUE(in_file() == expected);
}

TEST_F(StageRead, WhatIsNotLoggedIsReadFromTheFile)
{
    Bytes expected = stream(7, static_cast<std::size_t>(whole()));
    if (rank() == 0) write_plain(path, expected);
    barrier();
    auto const before = expected;
    auto file = open(Mode::update);
    write(file, 1, rank() * block + 1000, 700);
    for (int r = 0; r < ranks(); ++r) {
        auto const one = data(r, 1, 700);
        std::copy(one.begin(), one.end(), expected.begin() + r * block + 1000);
    }
    auto const all = read(file, 0, whole());
    EXPECT_TRUE(all.bytes == expected);
    EXPECT_EQ(all.received, static_cast<std::uint64_t>(whole()));
    auto const none = read(file, rank() * block, 1000);
    EXPECT_TRUE(none.bytes == Bytes(expected.begin() + rank() * block, expected.begin() + rank() * block + 1000));
    EXPECT_TRUE(in_file() == before);
    // in the background
    Pattern pattern;
    auto const variable = pattern.add(std::vector<Extent>{{0, whole()}});
    auto step = file.declare(pattern);
    Bytes result(expected.size());
    step.read(variable, result);
    step.start();
    step.wait();
    EXPECT_TRUE(result == expected);
    EXPECT_TRUE(in_file() == before);
    file.close();
    EXPECT_TRUE(in_file() == expected);
}

TEST_F(StageRead, WhatTwoRanksWroteInOneCallIsFlushed)
{
    if (ranks() == 1) return;
    auto file = open();
    write(file, 1, rank() * block / 2);
    auto const all = read(file, 0, (ranks() + 1) * block / 2);
    EXPECT_TRUE(in_file() == all.bytes);
    file.close();
    EXPECT_TRUE(in_file() == all.bytes);
}

TEST_F(StageRead, BeyondTheEndOfTheFileTheLogsSayWhereItEnds)
{
    auto file = open();
    write(file, 1, rank() * 2 * block);
    auto const all = read(file, 0, 3 * ranks() * block);
    EXPECT_EQ(all.received, static_cast<std::uint64_t>((2 * ranks() - 1) * block));
    Bytes expected(all.bytes.size(), std::byte{0xA5});
    std::fill_n(expected.begin(), (2 * ranks() - 1) * block, std::byte{});
    for (int r = 0; r < ranks(); ++r) {
        auto const one = data(r, 1);
        std::copy(one.begin(), one.end(), expected.begin() + r * 2 * block);
    }
    EXPECT_TRUE(all.bytes == expected);
    file.close();
}

TEST_F(StageRead, AFileThatIsReadAgainAndAgainIsFlushed)
{
    auto file = open();
    write(file, 1, rank() * block);
    for (int turn = 0; turn < 30; ++turn) EXPECT_TRUE(read(file, 0, whole()).bytes == all_blocks(1));
    EXPECT_TRUE(in_file() == all_blocks(1));
    write(file, 2, rank() * block);
    EXPECT_TRUE(read(file, 0, whole()).bytes == all_blocks(2));
    EXPECT_TRUE(in_file() == all_blocks(1));
    file.close();
    EXPECT_TRUE(in_file() == all_blocks(2));
}

TEST_F(StageRead, LogsOfManyRequestsAreReadByTheirRanks)
{
    if (ranks() < 4) return;
    auto file = open();
    Pattern pattern;
    auto const variable = pattern.add(std::vector<Extent>{{rank() * block, 8}});
    auto step = file.declare(pattern);
    for (std::uint64_t turn = 0; turn < 23'000; ++turn) {
        step.write(variable, std::as_bytes(std::span(&turn, 1)));
        step.finish();
    }
    write(file, 1, rank() * block + 8, block - 8);
    auto const all = read(file, 0, whole()).bytes;
    for (int r = 0; r < ranks(); ++r) {
        std::uint64_t turn = 0;
        std::memcpy(&turn, all.data() + r * block, sizeof turn);
        EXPECT_EQ(turn, 22'999U);
        auto const one = data(r, 1, block - 8);
        EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + r * block + 8));
    }
    EXPECT_TRUE(in_file().empty());
    file.close();
}

TEST_F(StageRead, IntoASectionOfAnArrayAndTheSameBytesTwice)
{
    auto file = open();
    write(file, 1, rank() * block);
    auto const expected = all_blocks(1);
    Pattern pattern;
    auto const rows = pattern.add(std::vector<Extent>{{0, 60}});
    auto const twice = pattern.add(std::vector<Extent>{{10, 100}, {50, 200}, {0, 30}});
    auto step = file.declare(pattern);
    std::vector<std::byte> array(8 * 12, std::byte{0xA5});
    Bytes again(330);
    step.read(rows, interior(array, {8, 12}, {1, 1}));
    step.read(twice, again);
    step.finish();
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 12; ++j) {
            bool const inside = i > 0 && i < 7 && j > 0 && j < 11;
            EXPECT_EQ(array[static_cast<std::size_t>(i * 12 + j)],
                      inside ? expected[static_cast<std::size_t>((i - 1) * 10 + j - 1)] : std::byte{0xA5});
        }
    Bytes parts(expected.begin() + 10, expected.begin() + 110);
    parts.insert(parts.end(), expected.begin() + 50, expected.begin() + 250);
    parts.insert(parts.end(), expected.begin(), expected.begin() + 30);
    EXPECT_TRUE(again == parts);
    EXPECT_EQ(step.received(twice), 330U);
    EXPECT_TRUE(in_file().empty());
    file.close();
}

TEST_F(StageRead, SomeRanksReadNothing)
{
    auto file = open();
    write(file, 1, rank() * block);
    Pattern pattern;
    auto const variable = pattern.add(std::vector<Extent>{{0, last() ? whole() : 0}});
    auto step = file.declare(pattern);
    Bytes result(static_cast<std::size_t>(last() ? whole() : 0));
    step.read(variable, result);
    step.finish();
    EXPECT_TRUE(!last() || result == all_blocks(1));
    EXPECT_TRUE(in_file().empty());
    file.close();
}

TEST_F(StageRead, AMistakeOfOneRankIsAnErrorOnAll)
{
    auto file = open();
    write(file, 1, rank() * block);
    Pattern pattern;
    auto const variable = pattern.add(std::vector<Extent>{{rank() * block, block}});
    auto step = file.declare(pattern);
    Bytes result(static_cast<std::size_t>(block));
    auto const error = same_error_on_all_ranks([&] {
        step.read(variable, std::span(result).first(last() ? 5 : block));
        step.finish();
    });
    EXPECT_EQ(error.code, Errc::invalid_argument);
    EXPECT_TRUE(read(file, 0, whole()).bytes == all_blocks(1));
    file.close();
}

}  // namespace
}  // namespace tapioca::test
