// Large numbers: far offsets, many extents, many pieces, and ranks with nothing to do.
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

constexpr std::int64_t TiB = std::int64_t{1} << 40;

Options aggregated(std::uint64_t buffersize, int aggregators)
{
    Options options;
    options.direct = Direct::never;
    options.buffersize = buffersize;
    options.nbaggr = aggregators;
    return options;
}

double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Size, DataAtFiveTebibytesIsWrittenAndReadQuickly)
{
    Scratch const scratch;
    constexpr std::int64_t each = 100'001;
    Pattern pattern;  // a little at the front and a little 5 TiB further on
    pattern.add({{rank() * 100, 100}, {5 * TiB + rank() * each, each}});
    auto direct = aggregated(4096, 1);
    direct.direct = Direct::always;
    auto const start = std::chrono::steady_clock::now();
    for (auto const& options : {aggregated(4096, 1), aggregated(4096, ranks()), Options{}, direct}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("sparse"), Mode::create, options);
        auto step = file.declare(pattern);
        auto const data = stream(static_cast<std::uint64_t>(rank()), 100 + each);
        step.write(0, data);
        EXPECT_EQ(step.finish().bytes, data.size());
        EXPECT_EQ(file.size(), static_cast<std::uint64_t>(5 * TiB + ranks() * each));
        std::vector<std::byte> back(data.size());
        step.read(0, back);
        EXPECT_EQ(step.finish().bytes, data.size());
        EXPECT_TRUE(back == data);
        file.close();

        int const fd = ::open(scratch.path("sparse").c_str(), O_RDONLY);
        std::vector<std::byte> plain(each);
        EXPECT_EQ(::pread(fd, plain.data(), each, 5 * TiB + rank() * each), each);
        ::close(fd);
        EXPECT_EQ(std::memcmp(plain.data(), data.data() + 100, each), 0);
        barrier();
    }
    EXPECT_LT(seconds_since(start), 20);
}

TEST(Size, AMillionExtentsOfOneRankAreQuickAndTakeLittleMemory)
{
    Scratch const scratch;
    constexpr std::int64_t n = 1'000'000;
    std::vector<Extent> extents;  // irregular, and only on rank 0; the others have one each
    if (rank() == 0)
        for (std::int64_t i = 0; i < n; ++i) extents.push_back({(i * 7919 % n) * 64, 1 + i % 50});
    else
        extents.push_back({n * 64 + rank() * 10, 10});
    Pattern pattern;
    pattern.add(extents);
    EXPECT_LE(pattern.bookkeeping_bytes(), 32 * extents.size() + 1024);
    auto const data = stream(static_cast<std::uint64_t>(rank()), pattern.bytes(0));

    auto const start = std::chrono::steady_clock::now();
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, aggregated(1 << 20, 1));
    auto step = file.declare(pattern);
    step.write(0, data);
    EXPECT_EQ(step.finish().bytes, data.size());
    std::vector<std::byte> back(data.size());
    step.read(0, back);
    EXPECT_EQ(step.finish().bytes, data.size());
    file.close();
    EXPECT_LT(seconds_since(start), 20);
    EXPECT_TRUE(back == data);
    auto const bytes = contents(scratch.path("file"));
    std::int64_t at = 0;
    std::int64_t wrong = 0;
    for (auto const& [offset, length] : extents) {
        if (std::memcmp(bytes.data() + offset, data.data() + at, static_cast<std::size_t>(length)) != 0) ++wrong;
        at += length;
    }
    EXPECT_EQ(wrong, 0);
}

TEST(Size, OnlyTheLastRankHasSomethingToDo)
{
    Scratch const scratch;
    bool const last = rank() == ranks() - 1;
    for (auto const& options : {aggregated(4096, 1), aggregated(4096, ranks()), Options{}}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        Pattern pattern;
        pattern.add({{12'345, last ? 1'000'000 : 0}});
        auto step = file.declare(pattern);
        auto const data = stream(3, pattern.bytes(0));
        step.write(0, data);
        EXPECT_EQ(step.finish().bytes, data.size());
        file.close();
        auto const bytes = contents(scratch.path("file"));
        ASSERT_EQ(bytes.size(), 1'012'345U);
        auto const expected = stream(3, 1'000'000);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes.begin() + 12'345));
        barrier();
    }
}

TEST(Size, AStridedSubarrayOfManyPiecesTakesNoMoreMemoryThanAFew)
{
    Scratch const scratch;
    constexpr std::int64_t n = 32;
    auto const part = [](std::int64_t side) {  // every second element in all dimensions, planes dealt to ranks
        auto const planes = 2 * ranks() * 4;
        return Subarray{{planes, side, side, side},
                        {2 * rank(), 0, 1, 0},
                        {4, side / 2, side / 2, side / 2},
                        {2 * ranks(), 2, 2, 2},
                        8,
                        40};
    };
    Pattern pattern;
    pattern.add(part(n));
    Pattern tiny;
    tiny.add(part(4));
    EXPECT_EQ(pattern.bookkeeping_bytes(), tiny.bookkeeping_bytes());
    EXPECT_LT(pattern.bookkeeping_bytes(), 512U);

    std::vector<double> data;
    for (std::uint64_t i = 0; i < pattern.bytes(0) / 8; ++i) data.push_back(rank() * 1e6 + static_cast<double>(i));
    for (auto const& options : {aggregated(65536, 1), aggregated(4096, ranks())}) {
        if (rank() == 0) write_plain(scratch.path("file"), std::vector<std::byte>(40 + 8 * ranks() * n * n * n * 8));
        barrier();
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::update, options);
        auto step = file.declare(pattern);
        step.write(0, data);
        EXPECT_EQ(step.finish().bytes, data.size() * 8);
        std::vector<double> back(data.size());
        step.read(0, back);
        step.finish();
        EXPECT_TRUE(back == data);
        file.close();
        auto const bytes = contents(scratch.path("file"));
        std::vector<double> all((bytes.size() - 40) / 8);
        std::memcpy(all.data(), bytes.data() + 40, all.size() * 8);
        std::size_t wrong = 0;
        for (std::size_t e = 0; e < all.size(); ++e) {
            auto const w = static_cast<std::int64_t>(e) % n;
            auto const z = static_cast<std::int64_t>(e) / n % n;
            auto const y = static_cast<std::int64_t>(e) / (n * n) % n;
            auto const x = static_cast<std::int64_t>(e) / (n * n * n);
            bool const covered = x % 2 == 0 && y % 2 == 0 && z % 2 == 1 && w % 2 == 0;
            auto const owner = x / 2 % ranks();
            auto const index = ((x / 2 / ranks() * (n / 2) + y / 2) * (n / 2) + z / 2) * (n / 2) + w / 2;
            auto const expected = covered ? static_cast<double>(owner) * 1e6 + static_cast<double>(index) : 0.0;
            if (all[e] != expected) ++wrong;
        }
        EXPECT_EQ(wrong, 0U);
        barrier();
    }
}

}  // namespace
}  // namespace tapioca::test
