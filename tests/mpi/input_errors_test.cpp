// Bad input to a step: one clear line, the same on every rank, nothing written, and the step can be run again.
#include <cstring>
#include <optional>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

constexpr std::int64_t each = 10'000;

Options way(Direct direct)
{
    Options options;
    options.direct = direct;
    options.buffersize = 4096;
    return options;
}

/// A file full of zeros, a step of one variable of 10,000 bytes on every rank, and the data for it.
class Prepared {
public:
    Prepared(Scratch const& scratch, Direct direct)
        : path(scratch.path("file")), data(stream(static_cast<std::uint64_t>(rank()), each))
    {
        if (rank() == 0) write_plain(path, std::vector<std::byte>(static_cast<std::size_t>(each * ranks())));
        barrier();
        file.emplace(File::open(MPI_COMM_WORLD, path, Mode::update, way(direct)));
        Pattern pattern;
        pattern.add({{rank() * each, each}});
        step.emplace(file->declare(pattern));
    }

    /// finish() must fail with the error of the last rank; then the same step must work.
    void expect_failure(Errc code, std::vector<std::string> const& parts, bool untouched)
    {
        auto const error = same_error_on_all_ranks([&] { step->finish(); });
        EXPECT_EQ(error.code, code);
        EXPECT_EQ(error.rank, ranks() - 1);
        EXPECT_EQ(error.path, path);
        expect_parts(error.text, {"tapioca: finish: rank " + std::to_string(ranks() - 1) + ": ", path});
        expect_parts(error.text, parts);
        if (untouched) {
            EXPECT_TRUE(contents(path) == std::vector<std::byte>(static_cast<std::size_t>(each * ranks())));
        }
        barrier();
        step->write(0, data);
        EXPECT_EQ(step->finish().bytes, static_cast<std::uint64_t>(each));
        step.reset();
        file->close();
        auto const all = contents(path);
        ASSERT_EQ(all.size(), static_cast<std::size_t>(each * ranks()));
        EXPECT_EQ(std::memcmp(all.data() + rank() * each, data.data(), each), 0);
    }

    [[nodiscard]] bool last() const { return rank() == ranks() - 1; }

    std::string path;
    std::vector<std::byte> data;
    std::optional<File> file;
    std::optional<Step> step;
};

class Input : public testing::TestWithParam<Direct> {
protected:
    [[nodiscard]] bool aggregated() const { return GetParam() == Direct::never; }
};
INSTANTIATE_TEST_SUITE_P(Ways, Input, testing::Values(Direct::never, Direct::always),
                         [](auto const& test) { return test.param == Direct::never ? "Aggregated" : "Direct"; });

TEST_P(Input, BufferOfTheWrongSize)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    std::span<std::byte const> const all(prepared.data);
    prepared.step->write(0, prepared.last() ? all.first(9'999) : all);
    prepared.expect_failure(Errc::invalid_argument,
                            {"write(variable 0)", "the buffer has 9999 bytes, but 10000 were declared"}, aggregated());
    expect_next_file_works(scratch);
}

TEST_P(Input, VariableSuppliedTwice)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    prepared.step->write(0, prepared.data);
    if (prepared.last()) prepared.step->write(0, prepared.data);
    prepared.expect_failure(Errc::invalid_state, {"write(variable 0)", "supplied before"}, aggregated());
    expect_next_file_works(scratch);
}

TEST_P(Input, VariableNeverSupplied)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    if (!prepared.last()) prepared.step->write(0, prepared.data);
    prepared.expect_failure(Errc::invalid_state, {"variable 0 (10000 bytes) was never supplied"}, aggregated());
    expect_next_file_works(scratch);
}

TEST_P(Input, VariableThatIsNotDeclared)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    prepared.step->write(0, prepared.data);
    if (prepared.last()) prepared.step->write(7, prepared.data);
    prepared.expect_failure(Errc::invalid_argument, {"write(variable 7)", "1 variables are declared"}, aggregated());
    expect_next_file_works(scratch);
}

TEST_P(Input, NullDataWithALength)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    std::span<std::byte const> const null(static_cast<std::byte const*>(nullptr), prepared.last() ? each : 0);
    if (prepared.last())
        prepared.step->write(0, null);
    else
        prepared.step->write(0, prepared.data);
    prepared.expect_failure(Errc::invalid_argument, {"the data is null, its length 10000"}, aggregated());
    expect_next_file_works(scratch);
}

TEST_P(Input, ReadingAndWritingInOneStep)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    prepared.step->write(0, prepared.data);
    std::vector<std::byte> back(each);
    if (prepared.last()) prepared.step->read(0, back);
    prepared.expect_failure(Errc::invalid_state, {"read(variable 0)", "already has variables to write"}, aggregated());
    expect_next_file_works(scratch);
}

TEST_P(Input, SeveralThingsWrongReportTheFirstOfTheLowestRank)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    if (prepared.last()) {
        prepared.step->write(3, prepared.data);
        prepared.step->write(0, prepared.data);
        prepared.step->write(0, prepared.data);
    } else {
        prepared.step->write(0, prepared.data);
    }
    prepared.expect_failure(Errc::invalid_argument, {"write(variable 3)"}, aggregated());
    expect_next_file_works(scratch);
}

TEST_P(Input, SupplyingWhileTheStepIsUnderWay)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    prepared.step->write(0, prepared.data);
    prepared.step->start();
    if (prepared.last()) prepared.step->write(0, prepared.data);
    auto const error = same_error_on_all_ranks([&] { prepared.step->wait(); });
    EXPECT_EQ(error.code, Errc::invalid_state);
    expect_parts(error.text, {"under way"});
    prepared.step->write(0, prepared.data);
    EXPECT_EQ(prepared.step->finish().bytes, static_cast<std::uint64_t>(each));
    prepared.file->close();
}

TEST_P(Input, RebasedOutOfTheRangeOfOffsets)
{
    Scratch const scratch;
    Prepared prepared(scratch, GetParam());
    for (std::int64_t const base : {std::int64_t{-1}, INT64_MAX - 5, INT64_MIN}) {
        prepared.step->rebase(base);
        prepared.step->write(0, prepared.data);
        auto const error = same_error_on_all_ranks([&] { prepared.step->finish(); });
        EXPECT_EQ(error.code, Errc::invalid_argument);
        EXPECT_EQ(error.rank, 0);
        expect_parts(error.text, {"finish", "rebased by " + std::to_string(base), "range of file offsets"});
    }
    EXPECT_TRUE(contents(prepared.path) == std::vector<std::byte>(static_cast<std::size_t>(each * ranks())));
    barrier();
    prepared.step->rebase(0);
    prepared.step->write(0, prepared.data);
    EXPECT_EQ(prepared.step->finish().bytes, static_cast<std::uint64_t>(each));
    prepared.file->close();
    expect_next_file_works(scratch);
}

TEST_P(Input, WritingPastWhatAFileSystemCanHold)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("far"), Mode::create, way(GetParam()));
    Pattern pattern;
    pattern.add({{INT64_MAX - 10'000 * (rank() + 1), 10'000}});
    auto step = file.declare(pattern);
    auto const data = stream(1, 10'000);
    step.write(0, data);
    auto const error = same_error_on_all_ranks([&] { step.finish(); });
    EXPECT_EQ(error.sys_errno, EFBIG);
    EXPECT_EQ(error.code, Errc::no_space);
    file.close();
    expect_next_file_works(scratch);
}

TEST_P(Input, WritingToAFileOpenedForReading)
{
    Scratch const scratch;
    auto const path = scratch.path("readonly");
    if (rank() == 0) write_plain(path, stream(1, 100));
    barrier();
    auto file = File::open(MPI_COMM_WORLD, path, Mode::read, way(GetParam()));
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto step = file.declare(pattern);
    auto const data = stream(2, 10);
    step.write(0, data);
    auto const error = same_error_on_all_ranks([&] { step.finish(); });
    EXPECT_EQ(error.code, Errc::invalid_state);
    expect_parts(error.text, {"opened for reading"});
    EXPECT_TRUE(contents(path) == stream(1, 100));
    file.close();
    expect_next_file_works(scratch);
}

TEST_P(Input, ReadingPastTheEndIsNoErrorButShort)
{
    Scratch const scratch;
    auto const path = scratch.path("short");
    constexpr std::size_t there = 25'001;
    if (rank() == 0) write_plain(path, stream(1, there));
    barrier();
    auto file = File::open(MPI_COMM_WORLD, path, Mode::read, way(GetParam()));
    Pattern pattern;  // everybody reads the same: 20,000 before and 20,000 across the end, then only past it
    pattern.add({{0, 20'000}, {20'000, 20'000}});
    pattern.add({{1'000'000 + rank(), 500}});
    auto step = file.declare(pattern);
    std::vector<std::byte> across(40'000, std::byte{1});
    std::vector<std::byte> past(500, std::byte{1});
    step.read(0, across);
    step.read(1, past);
    EXPECT_EQ(step.finish().bytes, there);
    EXPECT_EQ(step.received(0), there);
    EXPECT_EQ(step.received(1), 0U);
    EXPECT_TRUE(std::equal(across.begin(), across.begin() + there, stream(1, there).begin()));
    EXPECT_TRUE(std::all_of(across.begin() + there, across.end(), [](std::byte b) { return b == std::byte{1}; }));
    file.close();
}

}  // namespace
}  // namespace tapioca::test
