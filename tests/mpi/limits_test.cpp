// Descriptors that run out, and many files at once: either an error on all ranks or none, and nothing is left behind.
#include <dirent.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t each = 5000;
constexpr int many = 50;

Pattern blocks()
{
    Pattern pattern;
    pattern.add({{rank() * each, each}});
    return pattern;
}

std::vector<std::byte> bytes_of(int file)
{
    return stream(static_cast<std::uint64_t>(file * 64 + rank()), each);
}

/// No more descriptors than those that are open, and `more`.
class FewDescriptors {
public:
    explicit FewDescriptors(int more)
    {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        int const next = ::dup(STDIN_FILENO);
        auto few = before_;
        few.rlim_cur = static_cast<rlim_t>(next + more);
        ::close(next);
        ::setrlimit(RLIMIT_NOFILE, &few);
    }
    FewDescriptors(FewDescriptors const&) = delete;
    FewDescriptors& operator=(FewDescriptors const&) = delete;
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_ = {};
};

/// A file from open to close, with so few descriptors on some ranks; then the next one. True if it went well.
bool try_with(int more, bool alone, std::string const& path, Options const& options, MPI_Comm comm = MPI_COMM_WORLD)
{
    Caught error;
    {
        auto few = std::make_unique<FewDescriptors>(!alone || rank() == ranks() - 1 ? more : 500);
        std::unique_ptr<File> file;
        error = caught([&] { file = std::make_unique<File>(File::open(comm, path, Mode::create, options)); });
        if (file) {
            Caught writing;  // of staged files a rank hears alone, and all hear when it is closed
            error = caught([&] {
                auto step = file->declare(blocks());
                auto const data = bytes_of(1);
                step.write(0, data);
                writing = caught([&] { step.finish(); });
            });
            barrier();
            auto const closing = caught([&] { file->close(); });
            if (error.code == Errc::ok && !options.stage) error = writing;
            if (error.code == Errc::ok) error = closing;
        }
    }
    bool const failed = error.code != Errc::ok;
    bool const same = on_all_ranks(failed) || on_all_ranks(!failed);
    EXPECT_TRUE(same) << error.text;
    if (failed && same) {
        expect_same_on_all_ranks(error);
        expect_parts(error.text, {"Too many open files"});
    }
    return !failed;
}

void count_up(Scratch const& scratch, Options const& options, bool fresh)
{
    expect_next_file_works(scratch, options);
    for (bool const alone : {false, true}) {
        int wanted = 0;
        for (int more = 0; more < 40; ++more) {
            MPI_Comm comm = MPI_COMM_WORLD;
            if (fresh) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            bool const good = try_with(more, alone, scratch.path("few"), options, comm);
            barrier();
            if (rank() == 0)  // a file that could not be flushed
                for (auto const* const name : {"few.tapioca", "few"}) fs::remove(scratch.path(name));
            if (fresh) MPI_Comm_free(&comm);
            barrier();
            expect_next_file_works(scratch, options);
            if (!good) wanted = more + 1;
            if (good && more > wanted + 2) break;
        }
        EXPECT_GT(wanted, 0) << "it never failed";
        EXPECT_LT(wanted, 40) << "it never worked";
        if (rank() == 0) std::printf("  %d descriptors are enough\n", wanted);
    }
}

Options plain()
{
    Options options;
    options.direct = Direct::never;
    options.buffersize = 4096;
    options.nbaggr = ranks();  // every rank opens the target
    return options;
}

TEST(Descriptors, ThatRunOutAreOneErrorOnAllRanksAndTheNextFileWorks)
{
    Scratch const scratch;
    count_up(scratch, plain(), false);
}

TEST(Descriptors, ThatRunOutOnANewCommunicatorAreOneErrorOnAllRanks)
{
    Scratch const scratch;
    count_up(scratch, plain(), true);
}

TEST(Descriptors, ThatRunOutForStagedFilesAreOneErrorOnAllRanks)
{
    Scratch const scratch;
    if (rank() == 0) fs::create_directory(scratch.path("stage"));
    auto options = plain();
    options.stage = "ssd:" + scratch.path("stage");
    for (auto const mapping : {StageMapping::process, StageMapping::node}) {
        options.stage_mapping = mapping;
        count_up(scratch, options, false);
    }
}

/// What a process has.
struct Belongings {
    std::size_t descriptors = count("/proc/self/fd");
    std::size_t threads = count("/proc/self/task");
    std::size_t mappings = lines("/proc/self/maps");
    std::size_t memory_files = count("/dev/shm", "tapioca-" + std::to_string(::getpid()) + "-");

    static std::size_t count(char const* directory, std::string const& prefix = {})
    {
        std::size_t number = 0;
        for (auto const& entry : fs::directory_iterator(directory))
            number += entry.path().filename().string().starts_with(prefix);
        return number;
    }
    static std::size_t lines(char const* path)
    {
        std::ifstream in(path);
        return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
    }
};

/// Runs `use` so that nothing is made for the first time any more, then again: nothing may be left of that.
void expect_nothing_left(std::function<void()> const& use)
{
    use();
    barrier();
    Belongings before;
    for (int i = 0; i < 200 && before.threads > 1; ++i) {  // memory is given back by a thread after close
        ::usleep(1'000);
        before = {};
    }
    use();
    barrier();
    Belongings after;
    // The allocator may have some more, by a number that grows with the threads that work at the same time; but not
    // one more for each file.
    auto const more_mappings = [&] { return after.mappings > before.mappings + many / 2; };
    for (int i = 0; i < 200 && (after.threads > before.threads || more_mappings()); ++i) {
        ::usleep(10'000);
        after = {};
    }
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(after.threads, before.threads);
    EXPECT_FALSE(more_mappings()) << after.mappings << " after " << before.mappings;
    EXPECT_EQ(after.memory_files, 0U);
}

void use_many(Scratch const& scratch, Options const& options)
{
    std::vector<File> files;
    std::vector<Step> steps;
    for (int i = 0; i < many; ++i)
        files.push_back(File::open(MPI_COMM_WORLD, scratch.path("many" + std::to_string(i)), Mode::create, options));
    for (auto& file : files) steps.push_back(file.declare(blocks()));
    for (int i = many - 1; i >= 0; --i) {
        auto const data = bytes_of(i);
        steps[static_cast<std::size_t>(i)].write(0, data);
        steps[static_cast<std::size_t>(i)].finish();
    }
    for (int i = 0; i < many; ++i) {
        std::vector<std::byte> back(each);
        steps[static_cast<std::size_t>(i)].read(0, back);
        steps[static_cast<std::size_t>(i)].finish();
        EXPECT_TRUE(back == bytes_of(i)) << "file " << i;
    }
    steps.clear();
    for (auto& file : files) file.close();
    barrier();
    for (int i = rank(); i < many; i += ranks()) {
        auto const all = contents(scratch.path("many" + std::to_string(i)));
        EXPECT_EQ(all.size(), static_cast<std::size_t>(each * ranks()));
        for (int r = 0; r < ranks() && all.size() == static_cast<std::size_t>(each * ranks()); ++r) {
            auto const part = stream(static_cast<std::uint64_t>(i * 64 + r), each);
            EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + r * each)) << "file " << i;
        }
    }
    barrier();
}

TEST(FiftyFiles, OpenAtOnceAreWrittenAndReadAndLeaveNothing)
{
    Scratch const scratch;
    expect_nothing_left([&] { use_many(scratch, plain()); });
}

TEST(FiftyFiles, StagedAtOnceAreWrittenAndReadAndLeaveNothing)
{
    Scratch const scratch;
    if (rank() == 0) fs::create_directory(scratch.path("stage"));
    barrier();
    auto options = plain();
    options.stage = "ssd:" + scratch.path("stage");
    for (auto const mapping : {StageMapping::process, StageMapping::node}) {
        options.stage_mapping = mapping;
        expect_nothing_left([&] { use_many(scratch, options); });
        EXPECT_TRUE(fs::is_empty(scratch.path("stage")));
    }
    options.stage_drain = "on";
    expect_nothing_left([&] { use_many(scratch, options); });
}

/// With the drop-in library preloaded; else a test of the MPI.
TEST(FiftyFiles, OfMpiIoAtOnceAreWrittenAndReadAndLeaveNothing)
{
    Scratch const scratch;
    auto const use = [&] {
        std::vector<MPI_File> files(many);
        for (int i = 0; i < many; ++i)
            EXPECT_EQ(
                MPI_File_open(MPI_COMM_WORLD, scratch.path("mpi" + std::to_string(i)).c_str(),
                              MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &files[static_cast<std::size_t>(i)]),
                MPI_SUCCESS);
        for (int i = 0; i < many; ++i) {
            auto const data = bytes_of(i);
            EXPECT_EQ(MPI_File_write_at_all(files[static_cast<std::size_t>(i)], rank() * each, data.data(), each,
                                            MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
        }
        for (int i = 0; i < many; ++i) {
            std::vector<std::byte> back(each);
            EXPECT_EQ(MPI_File_read_at_all(files[static_cast<std::size_t>(i)], rank() * each, back.data(), each,
                                           MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
            EXPECT_TRUE(back == bytes_of(i)) << "file " << i;
        }
        for (auto& file : files) EXPECT_EQ(MPI_File_close(&file), MPI_SUCCESS);
    };
    expect_nothing_left(use);
}

}  // namespace
}  // namespace tapioca::test
