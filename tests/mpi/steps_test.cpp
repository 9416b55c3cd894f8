// Sequences of steps: new buffers, other places, other files, in the background, and without MPI.
#include <array>
#include <optional>

#include <unistd.h>

#include "support/mpi_calls.hpp"
#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

Options aggregated(std::uint64_t buffersize, int buffers, int aggregators)
{
    Options options;
    options.direct = Direct::never;
    options.buffersize = buffersize;
    options.buffers = buffers;
    options.nbaggr = aggregators;
    return options;
}

std::vector<std::byte> mine(std::uint64_t step, std::size_t bytes)
{
    return stream(step * 1000 + static_cast<std::uint64_t>(rank()), bytes);
}

/// Rank r's `each` bytes at `base` + r * each, as mine(step) made them?
void expect_blocks(std::vector<std::byte> const& file, std::int64_t base, std::uint64_t step, std::int64_t each)
{
    ASSERT_GE(static_cast<std::int64_t>(file.size()), base + each * ranks());
    for (int r = 0; r < ranks(); ++r) {
        auto const expected = stream(step * 1000 + static_cast<std::uint64_t>(r), static_cast<std::size_t>(each));
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), file.begin() + base + r * each))
            << "step " << step << ", rank " << r;
    }
}

Pattern blocks(std::int64_t each)
{
    Pattern pattern;
    pattern.add({{rank() * each, each}});
    return pattern;
}

TEST(Step, TakesRangesOfEveryKindAndVariablesWithAType)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, std::filesystem::path(scratch.path("file")), Mode::create);
    Pattern pattern;
    auto const u = pattern.add<double>("u", block_of({.shape = {4 * ranks()}, .ranks = ranks(), .rank = rank()}));
    auto step = file.declare(pattern);
    std::array<double, 4> mine{};
    std::iota(mine.begin(), mine.end(), 10.0 * rank());
    auto const run_and_check = [&] {
        EXPECT_EQ(step.finish().bytes, sizeof(mine));
        double back[4] = {};
        step.read(0, back);
        EXPECT_EQ(step.finish().bytes, sizeof(mine));
        EXPECT_EQ(step.received(u), sizeof(mine));
        EXPECT_TRUE(std::equal(mine.begin(), mine.end(), back));
        step.read(u, std::span(back));
        step.finish();
        EXPECT_TRUE(std::equal(mine.begin(), mine.end(), back));
    };
    step.write(u, mine);  // extents that the compiler knows, and others
    run_and_check();
    step.write(0, std::as_bytes(std::span(mine)));
    run_and_check();
    step.write(u, std::span<double const>(mine));
    run_and_check();
    std::vector<double> const vector(mine.begin(), mine.end());
    step.write(0, vector);
    run_and_check();
    std::vector<double> const few(3);
    step.write(u, few);
    try {
        step.finish();
        ADD_FAILURE() << "3 of 4 values are no variable";
    } catch (Error const& error) {
        EXPECT_NE(std::string(error.what()).find("write(variable 0 'u'): the buffer has 24 bytes"), std::string::npos)
            << error.what();
    }
    file.close();
}

TEST(Steps, AppendWithNewBuffersEachTime)
{
    Scratch const scratch;
    constexpr std::int64_t each = 33'333;
    for (auto const& options : {Options{}, aggregated(4096, 2, 1), aggregated(8192, 3, ranks())}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        auto step = file.declare(blocks(each));
        for (std::uint64_t i = 0; i < 12; ++i) {
            auto const data = mine(i, each);
            step.rebase(static_cast<std::int64_t>(i) * each * ranks());
            step.write(0, data);
            EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
        }
        EXPECT_EQ(file.size(), static_cast<std::uint64_t>(12 * each * ranks()));
        for (std::uint64_t i = 0; i < 12; ++i) {  // and back, in another order
            auto const at = (i * 5) % 12;
            std::vector<std::byte> back(each);
            step.rebase(static_cast<std::int64_t>(at) * each * ranks());
            step.read(0, back);
            EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
            EXPECT_TRUE(back == mine(at, each)) << "step " << at;
        }
        file.close();
        auto const all = contents(scratch.path("file"));
        for (std::uint64_t i = 0; i < 12; ++i)
            expect_blocks(all, static_cast<std::int64_t>(i) * each * ranks(), i, each);
        barrier();
    }
}

TEST(Steps, GoToAFileOfTheirOwnEach)
{
    Scratch const scratch;
    constexpr std::int64_t each = 10'007;
    auto first = File::open(MPI_COMM_WORLD, scratch.path("0"), Mode::create, aggregated(4096, 2, ranks()));
    auto step = first.declare(blocks(each));
    std::optional<File> now;
    for (std::uint64_t i = 0; i < 6; ++i) {
        if (i > 0) {
            now.emplace(File::open(MPI_COMM_WORLD, scratch.path(std::to_string(i)), Mode::create));
            step.retarget(*now);
        }
        auto const data = mine(i, each);
        step.write(0, data);
        EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
        if (now) now->close();
    }
    first.close();
    for (std::uint64_t i = 0; i < 6; ++i) expect_blocks(contents(scratch.path(std::to_string(i))), 0, i, each);
}

TEST(Steps, OfTwoDeclarationsMayAlternate)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, aggregated(4096, 2, ranks()));
    auto large = file.declare(blocks(50'000));
    auto small = file.declare(blocks(10));
    for (std::uint64_t i = 0; i < 10; ++i) {
        auto const a = mine(2 * i, 50'000);
        auto const b = mine(2 * i + 1, 10);
        large.write(0, a);
        large.finish();
        small.write(0, b);
        small.finish();
        std::vector<std::byte> back(10);
        small.read(0, back);
        small.finish();
        EXPECT_TRUE(back == b);
        expect_blocks(contents(scratch.path("file")), 0, 2 * i + 1, 10);
        barrier();
    }
    file.close();
}

TEST(Steps, WithoutAnyDataAreStepsToo)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    auto nothing = file.declare(Pattern{});
    EXPECT_EQ(nothing.finish().bytes, 0U);
    Pattern empty;
    empty.add({{5, 0}});
    auto step = file.declare(empty);
    EXPECT_EQ(step.finish().bytes, 0U) << "nothing need be supplied";
    step.write(0, std::span<std::byte const>());
    EXPECT_EQ(step.finish().bytes, 0U);
    Pattern only_last;  // all but one rank learn from that one whether it writes or reads
    bool const last = rank() == ranks() - 1;
    only_last.add({{0, last ? 70'000 : 0}});
    auto alone = file.declare(only_last);
    auto data = mine(1, last ? 70'000 : 0);
    for (int i = 0; i < 5; ++i) {
        if (last) alone.write(0, data);
        EXPECT_EQ(alone.finish().bytes, data.size());
        std::vector<std::byte> back(data.size());
        if (last) alone.read(0, back);
        EXPECT_EQ(alone.finish().bytes, data.size());
        EXPECT_TRUE(back == data);
    }
    file.close();
    EXPECT_EQ(contents(scratch.path("file")).size(), 70'000U);
}

TEST(Steps, TakeAnyContiguousRangeOfPlainValues)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    Pattern pattern;
    pattern.add({{rank() * 80, 80}});
    pattern.add({{1'000'000 + rank() * 12, 12}});
    auto step = file.declare(pattern);
    std::vector<double> const numbers(10, 1.5 * rank());
    std::array<int, 3> const three = {rank(), 2, 3};
    step.write(0, numbers);
    step.write(1, three);
    EXPECT_EQ(step.finish().bytes, 92U);
    std::vector<double> numbers_back(10);
    std::array<int, 3> three_back = {};
    step.read(0, numbers_back);
    step.read(1, three_back);
    EXPECT_EQ(step.finish().bytes, 92U);
    EXPECT_EQ(numbers_back, numbers);
    EXPECT_EQ(three_back, three);
    file.close();
}

std::uint64_t sum_over_ranks(std::uint64_t value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

TEST(Background, MovesTheFileWhileTheApplicationComputes)
{
    Scratch const scratch;
    constexpr std::int64_t each = 1'000'000;
    // Buffers that hold all: everything can be drained with no further call. On a busy machine start() may return only
    // when all is done, so a few tries are granted.
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, aggregated(65536, 64, 1));
    auto step = file.declare(blocks(each));
    std::uint64_t overlapped = 0;
    for (std::uint64_t i = 0; i < 5 || (overlapped == 0 && i < 100); ++i) {
        auto const data = mine(i, each);
        step.write(0, data);
        step.start();
        ::usleep(10'000);
        auto const moved = step.wait();
        EXPECT_EQ(moved.bytes, static_cast<std::uint64_t>(each));
        overlapped += sum_over_ranks(moved.overlapped_bytes);
        expect_blocks(contents(scratch.path("file")), 0, i, each);
        barrier();
    }
    EXPECT_GT(overlapped, 0U);
    auto const data = mine(5, each);
    step.write(0, data);
    step.finish();
    std::uint64_t read_ahead = 0;
    for (int i = 0; i < 5 || (read_ahead == 0 && i < 100); ++i) {
        std::vector<std::byte> back(each);
        step.read(0, back);
        step.start();
        ::usleep(10'000);
        auto const moved = step.wait();
        EXPECT_EQ(moved.bytes, static_cast<std::uint64_t>(each));
        read_ahead += sum_over_ranks(moved.overlapped_bytes);
        EXPECT_TRUE(back == data);
    }
    EXPECT_GT(read_ahead, 0U);
    file.close();
}

TEST(Background, ProgressMovesMoreThanTheBuffersHold)
{
    Scratch const scratch;
    constexpr std::int64_t each = 200'000;
    for (auto options : {aggregated(4096, 2, 1), aggregated(4096, 1, ranks()), aggregated(8192, 2, 2)})
        for (auto const direct : {Direct::never, Direct::always}) {
            options.direct = direct;
            auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
            auto step = file.declare(blocks(each));
            auto const data = mine(1, each);
            step.write(0, data);
            step.start();
            while (!step.progress()) ::usleep(200);
            EXPECT_EQ(step.wait().bytes, static_cast<std::uint64_t>(each));
            expect_blocks(contents(scratch.path("file")), 0, 1, each);
            std::vector<std::byte> back(each);
            step.read(0, back);
            step.start();
            while (!step.progress()) ::usleep(200);
            EXPECT_EQ(step.wait().bytes, static_cast<std::uint64_t>(each));
            EXPECT_TRUE(back == data);
            file.close();
        }
}

TEST(Mpi, IsNotCalledFromTheSecondRunOn)
{
    Scratch const scratch;
    constexpr std::int64_t each = 100'000;
    for (auto options : {aggregated(4096, 2, 1), aggregated(4096, 2, ranks()), Options{}})
        for (auto const direct : {Direct::never, Direct::always}) {
            options.direct = direct;
            auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
            auto step = file.declare(blocks(each));
            auto data = mine(1, each);
            auto const run = [&](bool writing, bool in_background) {
                writing ? step.write(0, data) : step.read(0, std::span(data));
                if (in_background) {
                    step.start();
                    step.progress();
                    step.wait();
                } else {
                    step.finish();
                }
            };
            for (bool const writing : {true, false})
                for (bool const in_background : {false, true}) run(writing, in_background);
            take_mpi_calls();
            for (int i = 0; i < 3; ++i)
                for (bool const writing : {true, false})
                    for (bool const in_background : {false, true}) {
                        step.rebase(i * 1000);
                        run(writing, in_background);
                    }
            EXPECT_EQ(take_mpi_calls(), std::vector<std::string>{});
            file.close();
        }
    barrier();
    EXPECT_EQ(take_mpi_calls().back(), "Barrier") << "calls are seen at all";
}

}  // namespace
}  // namespace tapioca::test
