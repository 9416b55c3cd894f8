// Paths that lead some rank to another file, at open or later: the bytes are where they belong, or all ranks get the
// same error.
#include <array>
#include <filesystem>

#include <unistd.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

std::string who()
{
    return "rank " + std::to_string(ranks() - 1);
}

std::string host()
{
    char name[64] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}

/// Every rank does I/O, so that every rank opens the file.
Options everybody(Direct direct)
{
    Options options;
    options.direct = direct;
    options.nbaggr = ranks();
    options.buffersize = 4096;
    return options;
}

constexpr std::int64_t bytes_each = 20'000;

Pattern blocks()
{
    Pattern pattern;
    pattern.add({{rank() * bytes_each, bytes_each}});
    return pattern;
}

std::vector<std::byte> data_of_rank(int of_rank)
{
    return stream(static_cast<std::uint64_t>(of_rank) + 1, bytes_each);
}

std::vector<std::byte> whole()
{
    std::vector<std::byte> bytes;
    for (int r = 0; r < ranks(); ++r) {
        auto const part = data_of_rank(r);
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
}

/// One run of the step, in one direction or the other.
void run(Step& step, bool writing)
{
    auto data = data_of_rank(rank());
    if (!writing) std::fill(data.begin(), data.end(), std::byte{0xA5});
    writing ? step.write(0, data) : step.read(0, std::span(data));
    step.finish();
    EXPECT_TRUE(data == data_of_rank(rank()));
}

/// A working directory of this rank's, and back again.
class Inside {
public:
    explicit Inside(std::string const& directory) : before_(std::filesystem::current_path())
    {
        std::filesystem::current_path(directory);
    }
    Inside(Inside const&) = delete;
    Inside& operator=(Inside const&) = delete;
    ~Inside() { std::filesystem::current_path(before_); }

private:
    std::filesystem::path before_;
};

/// A directory of each rank's own.
std::string own_directory(Scratch const& scratch)
{
    auto const directory = scratch.path("of rank " + std::to_string(rank()));
    std::filesystem::create_directory(directory);
    return directory;
}

class WhichFile : public testing::TestWithParam<Direct> {
protected:
    void SetUp() override
    {
        if (rank() == 0) write_plain(scratch.path("file"), whole());
        barrier();
    }
    [[nodiscard]] File open(std::string const& path, Mode mode) const
    {
        return File::open(MPI_COMM_WORLD, path, mode, everybody(GetParam()));
    }
    /// What opening throws on all ranks, and that nothing was lost by it.
    [[nodiscard]] Caught open_error(std::string const& path, Mode mode) const
    {
        auto error = same_error_on_all_ranks([&] { (void)open(path, mode); });
        EXPECT_TRUE(contents(scratch.path("file")) == whole()) << "the file was changed";
        return error;
    }
    Scratch scratch;
};

TEST_P(WhichFile, StaysTheSameWhereverTheWorkingDirectoryGoes)
{
    for (auto const mode : {Mode::create, Mode::update, Mode::read}) {
        auto const directory = own_directory(scratch);
        write_plain(directory + "/file", stream(99, 10));
        Inside const there(scratch.directory());
        auto file = open("file", mode);
        auto step = file.declare(blocks());
        Inside const elsewhere(directory);
        run(step, mode != Mode::read);
        file.sync();
        EXPECT_EQ(file.size(), whole().size());
        file.close();
        EXPECT_TRUE(contents(scratch.path("file")) == whole());
        EXPECT_TRUE(contents(directory + "/file") == stream(99, 10));
        barrier();
    }
}

TEST_P(WhichFile, IsNotAnotherOneThatTookItsName)
{
    if (ranks() == 1) GTEST_SKIP() << "whoever has it open keeps it";
    for (auto const mode : {Mode::create, Mode::update, Mode::read}) {
        auto file = open(scratch.path("file"), mode);
        auto step = file.declare(blocks());
        if (rank() == 0) {
            write_plain(scratch.path("new"), whole());
            std::filesystem::rename(scratch.path("new"), scratch.path("file"));
        }
        barrier();
        auto data = data_of_rank(0);
        mode == Mode::read ? step.read(0, std::span(data)) : step.write(0, data);
        auto const error = same_error_on_all_ranks([&] { step.finish(); });
        EXPECT_EQ(error.code, Errc::mismatch);
        expect_parts(error.text, {"finish: rank 1: ", scratch.path("file"), "another file", "replaced", host()});
        file.close();
        EXPECT_TRUE(contents(scratch.path("file")) == whole()) << "the new file was touched";
        barrier();
    }
}

TEST_P(WhichFile, IsMissedWhenItsNameIsGone)
{
    if (ranks() == 1) GTEST_SKIP() << "whoever has it open keeps it";
    auto file = open(scratch.path("file"), Mode::update);
    auto step = file.declare(blocks());
    barrier();
    if (rank() == 0) std::filesystem::rename(scratch.path("file"), scratch.path("renamed"));
    barrier();
    auto const data = data_of_rank(0);
    step.write(0, data);
    auto const error = same_error_on_all_ranks([&] { step.finish(); });
    EXPECT_EQ(error.code, Errc::not_found);
    expect_parts(error.text, {"rank 1: ", "removed or renamed", host()});
    file.close();
}

TEST_P(WhichFile, MayHaveSeveralPaths)
{
    Inside const there(scratch.directory());
    if (rank() == 0) {
        std::filesystem::create_symlink("file", "symbolic");
        std::filesystem::create_hard_link("file", "hard");
    }
    barrier();
    for (auto const* const other : {"./file", "symbolic", "hard"})
        for (auto const mode : {Mode::create, Mode::update, Mode::read}) {
            auto file = open(last() ? other : scratch.path("file"), mode);
            auto step = file.declare(blocks());
            run(step, mode != Mode::read);
            file.close();
            EXPECT_TRUE(contents(scratch.path("file")) == whole()) << other;
            barrier();
        }
}

TEST_P(WhichFile, MustBeTheSameOnAllRanks)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    if (rank() == 0) write_plain(scratch.path("other"), whole());
    barrier();
    for (auto const mode : {Mode::create, Mode::update, Mode::read}) {
        auto const error = open_error(scratch.path(last() ? "other" : "file"), mode);
        EXPECT_EQ(error.code, Errc::mismatch);
        EXPECT_EQ(error.rank, ranks() - 1);
        EXPECT_EQ(error.path, scratch.path("file"));
        expect_parts(error.text,
                     {"open: " + who(), scratch.path("other"), "another file", scratch.path("file"), host()});
        EXPECT_TRUE(contents(scratch.path("other")) == whole());
        auto const missing = open_error(scratch.path(last() ? "missing" : "file"), mode);
        EXPECT_EQ(missing.code, Errc::mismatch);
        expect_parts(missing.text, {"open: " + who(), scratch.path("missing"), "No such file", scratch.path("file")});
        EXPECT_FALSE(std::filesystem::exists(scratch.path("missing")));
    }
    auto const mode = open_error(scratch.path("file"), last() ? Mode::update : Mode::create);
    EXPECT_EQ(mode.code, Errc::mismatch);
    expect_parts(mode.text, {"open: " + who(), "the mode is update, unlike rank 0's create"});
    expect_next_file_works(scratch);
}

/// As a directory of each host's own is: one path, and another file behind it on the last rank's node.
TEST_P(WhichFile, IsNotThatOfTheSamePathOnAnotherHost)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    auto const directory = own_directory(scratch);
    write_plain(directory + "/file", whole());
    barrier();
    Inside const there(rank() < ranks() / 2 ? scratch.directory() : directory);
    for (auto const mode : {Mode::create, Mode::update, Mode::read}) {
        auto const error = same_error_on_all_ranks([&] {
            auto file = open("/proc/self/cwd/file", mode);  // on one node a rank looks when it needs the file
            auto step = file.declare(blocks());
            run(step, mode != Mode::read);
        });
        EXPECT_EQ(error.code, Errc::mismatch);
        expect_parts(error.text, {"another file", host()});
        EXPECT_TRUE(contents(directory + "/file") == whole()) << "the other file was touched";
        barrier();
        for (auto const& entry : std::filesystem::directory_iterator(scratch.directory()))
            EXPECT_EQ(entry.path().string().find("probe"), std::string::npos) << "left behind: " << entry;
        barrier();
        if (rank() == 0) write_plain(scratch.path("file"), whole());
        barrier();
    }
    expect_next_file_works(scratch);
}

INSTANTIATE_TEST_SUITE_P(Ways, WhichFile, testing::Values(Direct::never, Direct::always));

TEST(Create, KeepsWhatAFileHasUntilNothingCanGoWrong)
{
    Scratch const scratch;
    if (rank() == 0) write_plain(scratch.path("file"), whole());
    barrier();
    Options options;
    options.stage = "ssd:" + scratch.path("no/such/directory");
    auto const error =
        same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options); });
    expect_parts(error.text, {"open", "stage"});
    EXPECT_TRUE(contents(scratch.path("file")) == whole()) << "emptied, although it could not be opened";
    barrier();
    options.stage = "ssd:" + scratch.directory();
    for (auto const& with : {Options{}, options}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, with);
        EXPECT_EQ(std::filesystem::file_size(scratch.path("file")), 0U);
        file.close();
        EXPECT_EQ(std::filesystem::file_size(scratch.path("file")), 0U);
        barrier();
        if (rank() == 0) write_plain(scratch.path("file"), whole());
        barrier();
    }
}

TEST(Create, ServesWhatCannotBeEmptied)
{
    auto file = File::open(MPI_COMM_WORLD, "/dev/null", Mode::create);
    auto step = file.declare(blocks());
    run(step, true);
    file.close();
}

}  // namespace
}  // namespace tapioca::test
