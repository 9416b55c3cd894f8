// Real limits: a full file system, a file-size limit, missing shared memory.
#include <cerrno>
#include <csignal>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "support/mpi_test.hpp"
#include "support/small_file_system.hpp"

namespace tapioca::test {
namespace {

Options aggregators(int count)
{
    Options options;
    options.direct = Direct::never;
    options.buffersize = 64 << 10;
    options.nbaggr = count;
    return options;
}

TEST(Full, AFullFileSystemIsTheSameErrorEverywhereAndTheNextFileWorks)
{
    Scratch const scratch;
    SmallFileSystem const small(scratch.path("small"), "1m");
    if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here (errno " << small.error() << ")";
    auto const path = scratch.path("small/file");
    constexpr std::int64_t bytes_each = 1 << 20;
    auto const data = stream(static_cast<std::uint64_t>(rank()), bytes_each);
    auto direct = aggregators(1);
    direct.direct = Direct::always;
    for (auto const& options : {aggregators(1), aggregators(ranks()), direct}) {
        auto file = File::open(MPI_COMM_WORLD, path, Mode::create, options);
        Pattern pattern;
        pattern.add({{rank() * bytes_each, bytes_each}});
        auto step = file.declare(pattern);
        step.write(0, data);
        auto const error = same_error_on_all_ranks([&] { step.finish(); });
        EXPECT_EQ(error.code, Errc::no_space);
        EXPECT_EQ(error.sys_errno, ENOSPC);
        EXPECT_EQ(error.path, path);
        expect_parts(error.text, {"tapioca: finish: rank ", path, "No space left on device"});
        file.close();
        expect_next_file_works(scratch);
        // the same place, now with little enough
        auto second = File::open(MPI_COMM_WORLD, path, Mode::create, options);
        Pattern little;
        little.add({{rank() * 100'000, 100'000}});
        auto again = second.declare(little);
        again.write(0, std::span(data).first(100'000));
        EXPECT_EQ(again.finish().bytes, 100'000U);
        second.close();
    }
}

TEST(Full, ALimitOnFileSizesIsReportedByItsRank)
{
    Scratch const scratch;
    auto const before = std::signal(SIGXFSZ, SIG_IGN);
    bool const last = rank() == ranks() - 1;
    rlimit limit = {};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    constexpr std::int64_t bytes_each = 300'000;
    auto const data = stream(1, bytes_each);
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, aggregators(ranks()));
    Pattern pattern;
    pattern.add({{rank() * bytes_each, bytes_each}});
    auto step = file.declare(pattern);
    step.write(0, data);
    step.finish();  // makes the shared memory, which the limit would count as a file
    auto low = limit;
    low.rlim_cur = static_cast<rlim_t>(bytes_each);
    if (last) ::setrlimit(RLIMIT_FSIZE, &low);
    step.write(0, data);
    auto const error = same_error_on_all_ranks([&] { step.finish(); });
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
    EXPECT_EQ(error.code, Errc::no_space);
    EXPECT_EQ(error.sys_errno, EFBIG);
    EXPECT_EQ(error.rank, ranks() - 1);
    expect_parts(error.text, {"File too large"});
    step.write(0, data);
    step.finish();
    file.close();
    expect_next_file_works(scratch);
}

TEST(Full, SharedMemoryThatCannotBeHadIsAnErrorNotASignal)
{
    Scratch const scratch;
    Pattern pattern;
    pattern.add({{rank() * 10'000, 10'000}});
    auto const data = stream(static_cast<std::uint64_t>(rank()), 10'000);
    auto earlier = File::open(MPI_COMM_WORLD, scratch.path("earlier"), Mode::create, aggregators(1));
    auto earlier_step = earlier.declare(pattern);
    earlier_step.write(0, data);
    earlier_step.finish();

    Pattern wide;  // buffers are no larger than the part of the file that the step is about
    wide.add({{rank() * (std::int64_t{1} << 60), 10'000}});
    for (std::uint64_t const buffersize : {std::uint64_t{1} << 40, std::uint64_t{1} << 60}) {
        Options options;
        options.direct = Direct::never;
        options.buffersize = buffersize;
        options.buffers = 16;  // 2^60 bytes 16 times would be 0 in 64 bits
        auto file = File::open(MPI_COMM_WORLD, scratch.path("large"), Mode::create, options);
        auto step = file.declare(wide);
        for (bool const in_background : {false, true}) {
            step.write(0, data);
            auto const error = same_error_on_all_ranks([&] { in_background ? step.start() : (void)step.finish(); });
            EXPECT_TRUE(error.code == Errc::no_space || error.code == Errc::memory) << error.text;
            expect_parts(error.text, {"start", "dram tier", "/dev/shm", "TAPIOCA_BUFFERSIZE"});
        }
        file.close();
        // A step that had its buffers before gets new ones.
        earlier_step.write(0, data);
        EXPECT_EQ(earlier_step.finish().bytes, 10'000U);
        expect_next_file_works(scratch);
    }
    earlier.close();
}

TEST(Full, AFailedStartDoesNotConfuseTheDirectionOfTheNext)
{
    if (ranks() < 2) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    Pattern pattern;  // the last rank has nothing and learns the direction from the others
    bool const idle = rank() == ranks() - 1;
    pattern.add({{rank() * 10'000, idle ? 0 : 10'000}});
    std::vector<std::byte> data = stream(1, idle ? 0 : 10'000);
    auto good = File::open(MPI_COMM_WORLD, scratch.path("good"), Mode::create, aggregators(1));
    auto good_step = good.declare(pattern);
    if (!idle) good_step.write(0, data);
    good_step.finish();
    Options options;
    options.direct = Direct::never;
    options.buffersize = std::uint64_t{1} << 40;
    auto bad = File::open(MPI_COMM_WORLD, scratch.path("bad"), Mode::create, options);
    Pattern wide;
    auto const at = rank() * (std::int64_t{1} << 50);
    wide.add({{at, idle ? 0 : 5000}, {at + (std::int64_t{1} << 49), idle ? 0 : 5000}});
    auto bad_step = bad.declare(wide);
    for (int i = 0; i < 50; ++i) {
        if (!idle) bad_step.write(0, data);
        EXPECT_NE(caught([&] { bad_step.finish(); }).code, Errc::ok);
        if (!idle) good_step.read(0, std::span(data));
        EXPECT_EQ(good_step.finish().bytes, data.size());
    }
    EXPECT_TRUE(data == stream(1, idle ? 0 : 10'000));
    bad.close();
    good.close();
}

}  // namespace
}  // namespace tapioca::test
