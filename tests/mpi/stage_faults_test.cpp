// Staged files with obstacles: places that are missing, full, locked or planted; writes that fail; and the results of
// overlapping writes, which other logs got wrong.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stage/log_files.hpp"
#include "stage/marker.hpp"
#include "support/faults.hpp"
#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"
#include "support/small_file_system.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

/// What all ranks print to standard error, while alive.
class Overheard {
public:
    explicit Overheard(std::string path) : path_(std::move(path)), before_(::dup(2))
    {
        int const file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        ::dup2(file, 2);
        ::close(file);
        barrier();
    }
    Overheard(Overheard const&) = delete;
    Overheard& operator=(Overheard const&) = delete;
    ~Overheard() { stop(); }
    /// Lines with `words`. Collective; ends it.
    int lines_with(std::string const& words)
    {
        stop();
        barrier();
        std::ifstream in(path_);
        int count = 0;
        for (std::string line; std::getline(in, line);) count += line.find(words) != std::string::npos ? 1 : 0;
        return count;
    }

private:
    void stop()
    {
        if (before_ < 0) return;
        ::dup2(before_, 2);
        ::close(before_);
        before_ = -1;
    }
    std::string path_;
    int before_;
};

/// Lets permissions count, which they do not for root.
class AsNobody {
public:
    AsNobody() : changed_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
    AsNobody(AsNobody const&) = delete;
    AsNobody& operator=(AsNobody const&) = delete;
    ~AsNobody()
    {
        if (changed_ && ::seteuid(0) != 0) std::abort();
    }
    static bool possible() { return ::geteuid() != 0 || AsNobody().changed_; }

private:
    bool changed_;
};

/// A staged file and where its log is.
class StageFaults : public testing::Test {
protected:
    StageFaults()
    {
        if (rank() == 0) {
            fs::create_directory(stage);
            write_plain(path, before);
        }
        barrier();
    }
    [[nodiscard]] Options staged(std::string const& directory) const
    {
        Options options;
        options.stage = "ssd:" + fs::absolute(directory).string();
        options.stage_mapping = StageMapping::process;
        options.buffersize = 65536;
        return options;
    }
    [[nodiscard]] Options staged() const { return staged(stage); }
    [[nodiscard]] File open(Options const& options) const
    {
        return File::open(MPI_COMM_WORLD, path, Mode::update, options);
    }
    [[nodiscard]] bool marked() const { return fs::exists(path + ".tapioca"); }
    /// Files beside the target, of logs that went on there.
    [[nodiscard]] int beside() const
    {
        int count = 0;
        for (auto const& entry : fs::directory_iterator(fs::path(path).parent_path()))
            count += entry.path().filename().string().find(".tapioca.rank") != std::string::npos ? 1 : 0;
        return count;
    }
    /// The job's directory in the place of the log.
    [[nodiscard]] std::string log_directory(std::string const& place) const
    {
        for (auto const& entry : fs::directory_iterator(place)) return entry.path().string();
        return "none";
    }
    void expect_untouched(std::string const& place) const
    {
        barrier();
        EXPECT_TRUE(contents(path) == before);
        EXPECT_FALSE(marked());
        EXPECT_TRUE(!fs::is_directory(place) || fs::is_empty(place));
        barrier();
    }
#ifdef RECOVER
    /// Brings the log into the file, in a process of its own. On rank 0; all wait.
    void recover(std::string const& target) const
    {
        barrier();
        if (rank() == 0) {
            // Without what the launcher tells its ranks.
            std::string const command =
                "env -i PATH=\"$PATH\" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                "ASAN_OPTIONS=detect_leaks=0 " RECOVER " " +
                target + " >" + scratch.path("recover.out") + " 2>&1 </dev/null";
            EXPECT_EQ(std::system(command.c_str()), 0);
            for (auto const byte : contents(scratch.path("recover.out")))
                if (HasFailure()) std::fputc(static_cast<int>(byte), stderr);
        }
        barrier();
    }
#endif

    Scratch const scratch;
    std::string const path = scratch.path("file");
    std::string const stage = scratch.path("stage");
    Bytes const before = stream(99, 5'000);
};

/// `bytes` of this rank in a row with those of the others, written in one call.
void write_row(File& file, std::uint64_t seed, std::int64_t bytes, std::int64_t begin = 0)
{
    Pattern pattern;
    pattern.add({{begin + rank() * bytes, bytes}});
    auto step = file.declare(pattern);
    auto const data = stream(seed + static_cast<std::uint64_t>(rank()), static_cast<std::size_t>(bytes));
    step.write(0, data);
    step.finish();
}

void apply_row(Bytes& image, std::uint64_t seed, std::int64_t bytes, std::int64_t begin = 0)
{
    for (int r = 0; r < ranks(); ++r)
        apply(image, begin, {{{r * bytes, bytes}}, {}},
              stream(seed + static_cast<std::uint64_t>(r), static_cast<std::size_t>(bytes)));
}

TEST_F(StageFaults, APlaceThatIsNoDirectoryIsTheSameErrorEverywhere)
{
    if (rank() == 0) write_plain(scratch.path("plain"), {});
    barrier();
    for (auto const* const name : {"missing", "plain"}) {
        auto const place = scratch.path(name);
        auto const error = same_error_on_all_ranks([&] { (void)open(staged(place)); });
        EXPECT_EQ(error.sys_errno, name == std::string("missing") ? ENOENT : ENOTDIR);
        expect_parts(error.text, {"tapioca: open: ", "stage: ", fs::absolute(place).string()});
        expect_untouched(place);
    }
    expect_next_file_works(scratch, staged());
}

TEST_F(StageFaults, APlaceThatIsLockedIsTheSameErrorEverywhere)
{
    if (!on_all_ranks(AsNobody::possible())) GTEST_SKIP() << "cannot become another user to be refused";
    if (rank() == 0) {
        ::chmod(stage.c_str(), 0555);
        ::chmod(scratch.directory().c_str(), 0777);
        ::chmod(path.c_str(), 0666);
    }
    barrier();
    {
        AsNobody const nobody;
        auto const error = same_error_on_all_ranks([&] { (void)open(staged()); });
        EXPECT_EQ(error.code, Errc::permission);
        expect_parts(error.text, {"stage: ", stage, "Permission denied"});
    }
    expect_untouched(stage);
    expect_next_file_works(scratch, staged());
}

TEST_F(StageFaults, APlaceThatIsFullAtOnceIsAWarningAndTheFileGoesWithout)
{
    SmallFileSystem const small(scratch.path("small"), "8k");
    if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
    Overheard overheard(scratch.path("stderr"));
    auto file = open(staged(scratch.path("small")));
    EXPECT_EQ(overheard.lines_with("the file is not staged"), 1);
    EXPECT_FALSE(marked());
    EXPECT_TRUE(fs::is_empty(scratch.path("small")));
    barrier();
    write_row(file, 1, 10'000);
    file.close();
    auto expected = before;
    apply_row(expected, 1, 10'000);
    EXPECT_TRUE(contents(path) == expected);
}

TEST_F(StageFaults, APlaceThatBecomesFullIsOneWarningAndTheLogGoesOnBesideTheFile)
{
    SmallFileSystem const small(scratch.path("small"), "2m");
    if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
    auto expected = before;
    Overheard overheard(scratch.path("stderr"));
    auto file = open(staged(scratch.path("small")));
    for (int turn = 0; turn < 2; ++turn) {
        for (std::uint64_t i = 0; i < 30; ++i) {  // large and small requests, over each other
            write_row(file, i, 60'000, static_cast<std::int64_t>(i) * 700);
            write_row(file, 100 + i, 90, static_cast<std::int64_t>(i) * 50'000);
            apply_row(expected, i, 60'000, static_cast<std::int64_t>(i) * 700);
            apply_row(expected, 100 + i, 90, static_cast<std::int64_t>(i) * 50'000);
        }
        barrier();
        EXPECT_EQ(beside(), 2 * ranks());
        file.flush();
        barrier();
        EXPECT_EQ(beside(), 0);
        EXPECT_TRUE(contents(path) == expected);
        barrier();
    }
    EXPECT_EQ(overheard.lines_with("continues beside the file"), 1) << "one for the node";
    file.close();
    EXPECT_TRUE(contents(path) == expected);
    EXPECT_TRUE(fs::is_empty(scratch.path("small")));
}

TEST_F(StageFaults, ATargetThatIsFullKeepsTheLogForLater)
{
    SmallFileSystem const small(scratch.path("small"), "1m");
    if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
    auto const target = scratch.path("small/file");
    auto file = File::open(MPI_COMM_WORLD, target, Mode::create, staged());
    write_row(file, 5, 1'000'000);
    for (bool const closing : {false, true}) {
        auto const error = same_error_on_all_ranks([&] { closing ? file.close() : file.flush(); });
        EXPECT_EQ(error.code, Errc::no_space);
        EXPECT_EQ(error.sys_errno, ENOSPC);
        expect_parts(error.text, {closing ? "tapioca: close: " : "tapioca: flush: ", "No space left on device",
                                  "tapioca log recover " + fs::absolute(target).string()});
    }
    EXPECT_TRUE(fs::exists(target + ".tapioca"));
    EXPECT_FALSE(fs::is_empty(stage));
    auto const error =
        same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, target, Mode::create, staged()); });
    EXPECT_EQ(error.code, Errc::invalid_state);
    expect_parts(error.text, {"tapioca log recover"});
    small.resize("64m");
    Bytes expected;
    apply_row(expected, 5, 1'000'000);
#ifdef RECOVER
    recover(target);
    EXPECT_TRUE(contents(target) == expected);
    EXPECT_FALSE(fs::exists(target + ".tapioca"));
    EXPECT_TRUE(fs::is_empty(stage));
#endif
}

TEST_F(StageFaults, ALogThatCannotBeWrittenIsThatRanksErrorAndAllHearOfItLater)
{
    auto file = open(staged());
    write_row(file, 1, 10'000);
    int const last = ranks() - 1;
    std::optional<faults::Armed> armed;
    if (rank() == last)
        armed.emplace(log_directory(stage) + "/rank" + std::to_string(last) + ".data", faults::Op::write,
                      faults::Kind::error, 1, EIO);
    auto const mine = caught([&] { write_row(file, 2, 20'000, 1'000'000); });
    armed.reset();
    EXPECT_EQ(mine.code, rank() == last ? Errc::io : Errc::ok) << mine.text;
    if (rank() == last) {
        EXPECT_EQ(mine.sys_errno, EIO);
        EXPECT_EQ(mine.rank, last);
        expect_parts(mine.text, {"tapioca: write to the log: rank " + std::to_string(last), path});
    }
    auto const error = same_error_on_all_ranks([&] { file.flush(); });
    EXPECT_EQ(error.sys_errno, EIO);
    EXPECT_EQ(error.rank, last);
    write_row(file, 3, 10'000);
    file.close();
    auto expected = before;
    apply_row(expected, 3, 10'000);
    for (int r = 0; r < last; ++r)
        apply(expected, 1'000'000, {{{r * 20'000, 20'000}}, {}}, stream(2 + static_cast<std::uint64_t>(r), 20'000));
    EXPECT_TRUE(contents(path) == expected);
}

TEST_F(StageFaults, AMarkerWhoseRemovalMayNotLastTakesItsLogsWithIt)
{
    auto options = staged();
    options.stage_sync = StageSync::write;
    auto file = open(options);
    write_row(file, 1, 10'000);
    std::optional<faults::Armed> armed;
    if (rank() == 0)
        armed.emplace(fs::path(path).parent_path().string(), faults::Op::sync, faults::Kind::error, 1, EIO);
    auto const error = same_error_on_all_ranks([&] { file.close(); });
    armed.reset();
    EXPECT_EQ(error.sys_errno, EIO);
    expect_parts(error.text, {"close", path});
    barrier();
    EXPECT_FALSE(marked());
    EXPECT_TRUE(fs::is_empty(stage)) << "a log that nobody could find";
    auto expected = before;
    apply_row(expected, 1, 10'000);
    EXPECT_TRUE(contents(path) == expected);
}

TEST_F(StageFaults, ALogThatIsRemovedWhileItIsOpenIsFlushedAndThenNotWrittenTo)
{
    auto file = open(staged());
    write_row(file, 1, 10'000);
    barrier();
    if (rank() == 0) fs::remove_all(log_directory(stage));
    barrier();
    write_row(file, 2, 10'000, 500'000);
    file.flush();  // what it holds is still there
    auto expected = before;
    apply_row(expected, 1, 10'000);
    apply_row(expected, 2, 10'000, 500'000);
    EXPECT_TRUE(contents(path) == expected);
    auto const error = caught([&] { write_row(file, 3, 10'000); });
    EXPECT_NE(error.code, Errc::ok);
    expect_parts(error.text, {"somebody has moved the log away"});
    (void)caught([&] { file.close(); });
    EXPECT_TRUE(contents(path) == expected);
    barrier();
    if (rank() == 0) fs::remove(path + ".tapioca");
}

TEST_F(StageFaults, TwoJobsShareAPlace)
{
    int const half = rank() % 2;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, half, rank(), &comm);
    auto const mine = path + std::to_string(half);
    auto file = File::open(comm, mine, Mode::create, staged());
    barrier();
    EXPECT_EQ(std::distance(fs::directory_iterator(stage), fs::directory_iterator()), std::min(ranks(), 2));
    barrier();
    Pattern pattern;
    pattern.add({{rank() * 30'000, 30'000}});
    auto step = file.declare(pattern);
    auto const data = stream(static_cast<std::uint64_t>(rank()), 30'000);
    step.write(0, data);
    step.finish();
    file.close();
    auto const all = contents(mine);
    EXPECT_TRUE(Bytes(all.begin() + rank() * 30'000, all.begin() + (rank() + 1) * 30'000) == data);
    barrier();
    EXPECT_TRUE(fs::is_empty(stage));
    MPI_Comm_free(&comm);
}

TEST_F(StageFaults, OnlyTheUserMayLookAtALog)
{
    auto const mask = ::umask(0);
    auto options = staged();
    options.stage_size = 1;  // all goes beside the file
    auto file = open(options);
    write_row(file, 1, 10'000);
    barrier();
    auto const mode = [](std::string const& of) {
        struct stat found = {};
        return ::lstat(of.c_str(), &found) == 0 ? found.st_mode & 07777 : 0U;
    };
    auto const directory = log_directory(stage);
    auto const number = std::to_string(rank());
    EXPECT_EQ(mode(directory), 0700U);
    EXPECT_EQ(mode(path + ".tapioca"), 0600U);
    for (auto const& log : {directory + "/rank" + number, path + ".tapioca.rank" + number})
        for (auto const* const ending : {".meta", ".data"}) EXPECT_EQ(mode(log + ending), 0600U) << log << ending;
    file.close();
    ::umask(mask);
}

TEST_F(StageFaults, LinksThatSomebodyPlantedAreNotFollowed)
{
    auto const victim = scratch.path("victim");
    auto const plant = [&](std::string const& at) {
        EXPECT_EQ(::symlink(fs::absolute(victim).c_str(), at.c_str()), 0);
    };
    auto const number = ".tapioca.rank" + std::to_string(rank());
    if (rank() == 0) {
        write_plain(victim, before);
        plant(path + ".tapioca");
    }
    barrier();
    auto const error = same_error_on_all_ranks([&] { (void)open(staged()); });
    EXPECT_EQ(error.code, Errc::invalid_state);
    if (rank() == 0) fs::remove(path + ".tapioca");
    barrier();
    expect_untouched(stage);

    // beside the file
    for (auto const* const ending : {".meta", ".data", ".new.meta", ".new.data"}) plant(path + number + ending);
    auto options = staged();
    options.stage_size = 1;
    auto file = open(options);
    write_row(file, 1, 10'000);
    file.close();
    auto expected = before;
    apply_row(expected, 1, 10'000);
    EXPECT_TRUE(contents(path) == expected);
    EXPECT_TRUE(contents(victim) == before);
    EXPECT_EQ(beside(), 0);

    // where the job's directory and its files would be
    if (rank() != 0) return;
    stage::OpeningId const identity = {std::byte{7}};
    auto const directory = stage + "/tapioca-" + stage::to_hex(identity);
    fs::create_directory_symlink(fs::absolute(scratch.directory()), directory);
    EXPECT_EQ(stage::make_directory(stage, identity).error().code, Errc::permission);
    fs::remove(directory);
    ASSERT_TRUE(stage::make_directory(stage, identity).has_value());
    plant(directory + "/rank0.meta");
    EXPECT_EQ(stage::create_private(directory + "/rank0.meta").error().sys_errno, EEXIST);
    EXPECT_EQ(stage::open_private(directory + "/rank0.meta", true).error().sys_errno, ELOOP);
    EXPECT_TRUE(contents(victim) == before);
}

#ifdef RECOVER
TEST_F(StageFaults, NothingDependsOnTheClock)
{
    {
        auto file = open(staged());
        write_row(file, 1, 10'000);
        write_row(file, 2, 300, 5'000);
        barrier();
    }  // not closed
    EXPECT_TRUE(marked());
    auto const log = log_directory(stage) + "/rank" + std::to_string(rank());
    for (auto const* const ending : {".meta", ".data"}) {
        auto const file = stage::open_private(log + ending, true);
        stage::Head head = {};
        ASSERT_TRUE(file && stage::read_all(file->get(), 0, std::as_writable_bytes(std::span(&head, 1))));
        head.created = rank() % 2 == 0 ? UINT64_MAX : 0;
        stage::seal(head);
        ASSERT_TRUE(stage::write_all(file->get(), 0, std::as_bytes(std::span(&head, 1))));
        timespec const absurd[2] = {{1, 0}, {4'000'000'000, 0}};
        ::utimensat(AT_FDCWD, (log + ending).c_str(), absurd, 0);
    }
    recover(path);
    auto expected = before;
    apply_row(expected, 1, 10'000);
    apply_row(expected, 2, 300, 5'000);
    EXPECT_TRUE(contents(path) == expected);
    EXPECT_FALSE(marked());
    EXPECT_TRUE(fs::is_empty(stage));
}
#endif

/// One rank writes, in a call; the others take part.
void write_alone(File& file, int writer, Extent extent, Bytes const& data)
{
    Pattern pattern;
    pattern.add({{extent.offset, rank() == writer ? extent.length : 0}});
    auto step = file.declare(pattern);
    if (rank() == writer) step.write(0, data);
    step.finish();
}

class StageOverlaps : public StageFaults, public testing::WithParamInterface<StageMapping> {
protected:
    [[nodiscard]] Options mapped() const
    {
        auto options = staged();
        options.stage_mapping = GetParam();
        return options;
    }
    /// Writes one after the other, then flushes.
    void expect_model(std::vector<std::pair<int, Extent>> const& writes)
    {
        if (rank() == 0) write_plain(path, before);
        barrier();
        auto expected = before;
        auto file = open(mapped());
        std::uint64_t seed = 1;
        for (auto const& [writer, extent] : writes) {
            auto const data = stream(++seed, static_cast<std::size_t>(extent.length));
            write_alone(file, writer, extent, data);
            apply(expected, 0, {{extent}, {}}, data);
        }
        file.flush();
        barrier();
        EXPECT_TRUE(contents(path) == expected);
        file.close();
        EXPECT_TRUE(contents(path) == expected);
        barrier();
    }
};
INSTANTIATE_TEST_SUITE_P(Mappings, StageOverlaps, testing::Values(StageMapping::process, StageMapping::node),
                         [](auto const& test) { return test.param == StageMapping::node ? "node" : "process"; });

TEST_P(StageOverlaps, TheLaterOfTwoWritesOfARankWins)
{
    expect_model({{0, {1'000, 500}}, {0, {1'000, 500}}});
    expect_model({{0, {1'000, 500}}, {0, {1'000, 200}}});
    expect_model({{0, {1'000, 500}}, {0, {1'000, 900}}});
    expect_model({{0, {1'000, 500}}, {0, {1'200, 500}}});  // B begins later
    expect_model({{0, {1'000, 500}}, {0, {1'200, 100}}});  // B lies inside A
    expect_model({{0, {1'200, 100}}, {0, {1'000, 500}}});
    expect_model({{0, {1'200, 500}}, {0, {1'000, 500}}});
}

TEST_P(StageOverlaps, ALaterStepOfAnotherRankWins)
{
    int const other = ranks() - 1;
    expect_model({{0, {1'000, 500}}, {other, {1'000, 500}}});
    expect_model({{other, {1'000, 500}}, {0, {1'100, 500}}});
    expect_model({{other, {1'000, 500}}, {0, {1'100, 50}}, {other, {1'120, 10}}, {0, {900, 300}}});
}

TEST_P(StageOverlaps, TwoHundredRandomWritesOverEachOther)
{
    Random random(4711);
    for (int const writers : {1, ranks()}) {
        std::vector<std::pair<int, Extent>> writes;
        for (int i = 0; i < 200; ++i)
            writes.push_back(
                {static_cast<int>(random.pick(0, writers - 1)), {random.pick(0, 5'000), random.pick(1, 700)}});
        expect_model(writes);
    }
}

}  // namespace
}  // namespace tapioca::test
