// I/O that fails, on one rank and at any call: the same error on every rank, no hang, and the next step works.
#include <cerrno>
#include <cstring>
#include <optional>

#include <unistd.h>

#include "support/faults.hpp"
#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

constexpr std::int64_t each = 20'000;
constexpr std::int64_t block = 500;

/// Every rank writes 500-byte blocks dealt in turn, so that each aggregator serves all ranks.
Pattern dealt()
{
    std::vector<Extent> extents;
    for (std::int64_t i = 0; i < each / block; ++i) extents.push_back({(i * ranks() + rank()) * block, block});
    Pattern pattern;
    pattern.add(extents);
    return pattern;
}

std::vector<std::byte> dealt_file(std::uint64_t seed)
{
    std::vector<std::byte> all(static_cast<std::size_t>(each * ranks()));
    for (int r = 0; r < ranks(); ++r) {
        auto const data = stream(seed + static_cast<std::uint64_t>(r), each);
        for (std::int64_t i = 0; i < each / block; ++i)
            std::copy_n(data.begin() + i * block, block, all.begin() + (i * ranks() + r) * block);
    }
    return all;
}

class Faults : public testing::TestWithParam<Direct> {
protected:
    Options options() const
    {
        Options result;
        result.direct = GetParam();
        result.buffersize = 4096;
        result.nbaggr = ranks();
        return result;
    }
    [[nodiscard]] int last() const { return ranks() - 1; }
    [[nodiscard]] std::vector<std::byte> mine(std::uint64_t seed) const
    {
        return stream(seed + static_cast<std::uint64_t>(rank()), each);
    }
};
INSTANTIATE_TEST_SUITE_P(Ways, Faults, testing::Values(Direct::never, Direct::always),
                         [](auto const& test) { return test.param == Direct::never ? "Aggregated" : "Direct"; });

/// Runs `finish` with a fault at call 1, 2, ... of the last rank until there are no more calls.
/// Readers take blocks as they come: without `stop_without`, a run that has no such call does not end it.
int expect_error_at_every_call(std::string const& path, faults::Op call, int error_number,
                               std::function<void()> const& supply, Step& step, int most_calls, bool stop_without)
{
    int failures = 0;
    for (int at = 1; at <= most_calls; ++at) {
        supply();
        std::optional<faults::Armed> armed;
        if (rank() == ranks() - 1) armed.emplace(path, call, faults::Kind::error, at, error_number);
        auto const error = caught([&] { step.finish(); });
        bool const fired = !on_all_ranks(!(armed && armed->fired() > 0));
        armed.reset();
        EXPECT_EQ(error.code != Errc::ok, fired) << "call " << at;
        if (!fired && stop_without) break;
        if (!fired) continue;
        ++failures;
        EXPECT_EQ(error.rank, ranks() - 1);
        EXPECT_EQ(error.sys_errno, error_number);
        EXPECT_EQ(error.path, path);
        expect_parts(error.text, {"tapioca: finish: rank " + std::to_string(ranks() - 1) + ": " + path + ": ",
                                  std::strerror(error_number)});
        EXPECT_EQ(error.code, error_number == ENOSPC ? Errc::no_space : Errc::io);
        expect_same_on_all_ranks(error);
        if (!on_all_ranks(!testing::Test::HasFailure())) break;
    }
    return failures;
}

TEST_P(Faults, AWriteThatFailsAtAnyCallIsTheSameErrorEverywhere)
{
    Scratch const scratch;
    for (int const error_number : {EIO, ENOSPC}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options());
        auto step = file.declare(dealt());
        auto const data = mine(5);
        auto const failures = expect_error_at_every_call(
            scratch.path("file"), faults::Op::write, error_number, [&] { step.write(0, data); }, step, 1000, true);
        EXPECT_GE(failures, 4) << "there were several calls to fail";
        step.write(0, data);
        EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
        file.close();
        EXPECT_TRUE(contents(scratch.path("file")) == dealt_file(5));
        expect_next_file_works(scratch);
    }
}

TEST_P(Faults, AReadThatFailsIsTheSameErrorEverywhere)
{
    Scratch const scratch;
    if (rank() == 0) write_plain(scratch.path("file"), dealt_file(6));
    barrier();
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::read, options());
    auto step = file.declare(dealt());
    std::vector<std::byte> back(each);
    auto const failures = expect_error_at_every_call(
        scratch.path("file"), faults::Op::read, EIO, [&] { step.read(0, back); }, step, 12, false);
    EXPECT_TRUE(failures == 12 || GetParam() == Direct::never) << failures;
    step.read(0, back);
    EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
    EXPECT_TRUE(back == mine(6));
    file.close();
    expect_next_file_works(scratch);
}

TEST_P(Faults, HalfDoneAndInterruptedCallsAreContinued)
{
    Scratch const scratch;
    for (auto const fault : {faults::Kind::halves, faults::Kind::interrupts}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options());
        auto step = file.declare(dealt());
        auto const data = mine(7);
        {
            faults::Armed const armed(scratch.path("file"), faults::Op::write, fault);
            step.write(0, data);
            EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
            EXPECT_GT(armed.fired(), 0);
        }
        EXPECT_TRUE(contents(scratch.path("file")) == dealt_file(7));
        std::vector<std::byte> back(each);
        {
            faults::Armed const armed(scratch.path("file"), faults::Op::read, fault);
            step.read(0, back);
            EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
            barrier();
        }
        EXPECT_TRUE(back == data);
        file.close();
    }
}

TEST_P(Faults, AWriteThatMovesNothingIsAnErrorNotALoop)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options());
    auto step = file.declare(dealt());
    auto const data = mine(8);
    step.write(0, data);
    std::optional<faults::Armed> armed;
    if (rank() == last()) armed.emplace(scratch.path("file"), faults::Op::write, faults::Kind::nothing, 2);
    auto const error = same_error_on_all_ranks([&] { step.finish(); });
    armed.reset();
    EXPECT_EQ(error.code, Errc::io);
    EXPECT_EQ(error.rank, last());
    file.close();
    expect_next_file_works(scratch);
}

TEST_P(Faults, InTheBackgroundTooTheErrorComesFromWait)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options());
    auto step = file.declare(dealt());
    auto const data = mine(9);
    step.write(0, data);
    std::optional<faults::Armed> armed;
    if (rank() == last()) armed.emplace(scratch.path("file"), faults::Op::write, faults::Kind::error, 3, EIO);
    step.start();
    while (!step.progress()) ::usleep(100);
    auto const error = same_error_on_all_ranks([&] { step.wait(); });
    armed.reset();
    EXPECT_EQ(error.sys_errno, EIO);
    EXPECT_EQ(error.rank, last());
    step.write(0, data);
    step.start();
    EXPECT_EQ(step.wait().bytes, static_cast<std::uint64_t>(each));
    file.close();
    EXPECT_TRUE(contents(scratch.path("file")) == dealt_file(9));
}

TEST(SyncAndClose, AFailureIsReportedByAllRanks)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    auto step = file.declare(dealt());
    auto const data = stream(1, each);
    step.write(0, data);
    step.finish();
    {
        faults::Armed const armed(scratch.path("file"), faults::Op::sync, faults::Kind::error, 1, EIO);
        auto const error = same_error_on_all_ranks([&] { file.sync(); });
        EXPECT_EQ(error.sys_errno, EIO);
        expect_parts(error.text, {"tapioca: sync: rank 0: ", scratch.path("file"), "fsync"});
    }
    file.sync();
    {
        faults::Armed const armed(scratch.path("file"), faults::Op::close, faults::Kind::error, 1, EDQUOT);
        auto const error = same_error_on_all_ranks([&] { file.close(); });
        EXPECT_EQ(error.code, Errc::no_space);
        expect_parts(error.text, {"tapioca: close: rank 0: ", scratch.path("file"), "Disk quota exceeded"});
    }
    EXPECT_FALSE(file.is_open());
    expect_next_file_works(scratch);
}

}  // namespace
}  // namespace tapioca::test
