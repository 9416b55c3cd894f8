// Another user puts or swaps things where the library creates or opens files: no file of another user is touched, no
// rank waits, and an error is one line, the same on all ranks.
#include <array>
#include <fstream>

#include <fcntl.h>
#include <fmt/core.h>

#include "attack/shared_place.hpp"
#include "engine/map_on_node.hpp"
#include "machine/tier/tier.hpp"
#include "stage/marker.hpp"
#include "support/setting.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t each = 10'000;

/// Everybody waits until rank 0 has done it as another user.
void plant(std::function<bool()> const& act)
{
    barrier();
    if (rank() == 0) {
        EXPECT_TRUE(as_nobody(act));
    }
    barrier();
}

void write(File& file, int salt)
{
    Pattern pattern;
    pattern.add({{rank() * each, each}});
    auto step = file.declare(pattern);
    auto const data = stream(static_cast<std::uint64_t>(salt * 100 + rank()), each);
    step.write(0, data);
    step.finish();
}

Options staged(SharedPlace const& place)
{
    Options options;
    options.stage = "ssd:" + place.directory();
    return options;
}

std::vector<std::string> job_directories(SharedPlace const& place)
{
    std::vector<std::string> found;
    for (auto const& entry : fs::directory_iterator(place.directory()))
        if (stage::is_job_directory(entry.path().string())) found.push_back(entry.path().string());
    return found;
}

std::unique_ptr<machine::Tier> ssd(SharedPlace const& place)
{
    auto made = machine::make_tier({"ssd", "ssd", place.directory(), {}, {}, {}, {}, {}});
    return made ? std::move(*made) : nullptr;
}

TEST(MemoryFile, IsNotTakenForWhatOthersPutInItsPlace)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(false);
    auto const tier = ssd(place);
    constexpr std::uint64_t bytes = 4096;
    if (rank() == 0) {
        auto const mapping = tier->create(bytes);
        ASSERT_TRUE(mapping);
        auto const name = mapping->name();
        auto const swap = [&](std::function<bool()> const& with) {
            EXPECT_TRUE(as_nobody([&] {
                (void)::rename(name.c_str(), (name + ".away").c_str());
                (void)::unlink(name.c_str());
                return with();
            }));
        };
        swap([&] { return ::symlink(place.victim().c_str(), name.c_str()) == 0; });
        EXPECT_FALSE(tier->attach(name, bytes));
        swap([&] { return ::mkfifo(name.c_str(), 0666) == 0; });
        EXPECT_FALSE(tier->attach(name, bytes)) << "and nobody waits for a writer";
        swap([&] { return ::mkdir(name.c_str(), 0777) == 0; });
        EXPECT_FALSE(tier->attach(name, bytes));
        fs::remove(name);
        swap([&] {
            std::ofstream(name) << std::string(bytes, 'x');
            return ::chmod(name.c_str(), 0666) == 0;
        });
        auto const foreign = tier->attach(name, bytes);
        ASSERT_FALSE(foreign);
        expect_parts(foreign.error().text, {name, "not a plain file of this user alone"});
    }
    barrier();
    place.expect_victim_untouched();
}

/// The tier of another, where somebody is quick: just before a rank attaches, another file of ours gets the name.
class SwappingTier final : public machine::Tier {
public:
    SwappingTier(machine::Tier const& tier, std::string bait) : Tier(tier.traits()), tier_(tier), bait_(std::move(bait))
    {
    }
    [[nodiscard]] core::Result<machine::TierMapping> create(std::uint64_t bytes, machine::Pages pages) const override
    {
        return tier_.create(bytes, pages);
    }
    [[nodiscard]] core::Result<machine::TierMapping> attach(std::string const& name, std::uint64_t bytes,
                                                            machine::Pages pages) const override
    {
        if (rank() == 1) {
            EXPECT_TRUE(as_nobody([&] { return ::rename(bait_.c_str(), name.c_str()) == 0; }));
        }
        return tier_.attach(name, bytes, pages);
    }

private:
    machine::Tier const& tier_;
    std::string bait_;
};

TEST(MemoryFile, IsNotTakenForAnotherFileOfOursThatGotItsName)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    SharedPlace const place(false);
    constexpr std::size_t bytes = 4096;
    if (rank() == 0) {
        write_plain(place.path("bait"), stream(3, bytes));
        ::chmod(place.path("bait").c_str(), 0600);
    }
    barrier();
    auto const tier = ssd(place);
    auto const mapping = engine::map_on_node(MPI_COMM_WORLD, SwappingTier(*tier, place.path("bait")), bytes);
    ASSERT_FALSE(mapping);
    expect_parts(mapping.error().text, {"another file has this name by now"});
}

TEST(MemoryFile, IsReadableByNobodyElseWhateverTheUmask)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(true);
    auto const before = ::umask(0);
    auto const tier = ssd(place);
    auto const mapping = tier->create(4096);
    ::umask(before);
    ASSERT_TRUE(mapping);
    EXPECT_FALSE(as_nobody([&] { return ::open(mapping->name().c_str(), O_RDONLY) >= 0; }));
    EXPECT_FALSE(as_nobody([&] { return ::open(mapping->name().c_str(), O_WRONLY) >= 0; }));
    EXPECT_FALSE(as_nobody([&] { return ::unlink(mapping->name().c_str()) == 0; }));
}

TEST(Logs, AreReadableByNobodyElseWhateverTheUmask)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(true);
    auto const before = ::umask(0);
    auto file = File::open(MPI_COMM_WORLD, place.path("target"), Mode::create, staged(place));
    write(file, 1);
    ::umask(before);
    barrier();
    if (rank() == 0) {
        ASSERT_EQ(job_directories(place).size(), 1U);
        auto const job = job_directories(place).front();
        EXPECT_EQ(fs::status(job).permissions(), fs::perms::owner_all);
        for (auto const& entry : fs::directory_iterator(job))
            EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
        EXPECT_FALSE(as_nobody([&] { return ::open((job + "/rank0.data").c_str(), O_RDONLY) >= 0; }));
        EXPECT_FALSE(as_nobody([&] { return ::open((place.path("target.tapioca")).c_str(), O_RDONLY) >= 0; }));
    }
    file.close();
}

TEST(Logs, AreNotLostWhenOthersPutALinkToAnotherJobInThePlaceOfTheirDirectory)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(false);  // else they cannot rename it
    auto other = File::open(MPI_COMM_WORLD, place.path("other"), Mode::create, staged(place));
    write(other, 7);
    barrier();
    auto const before = job_directories(place);
    barrier();
    auto file = File::open(MPI_COMM_WORLD, place.path("target"), Mode::create, staged(place));
    write(file, 1);
    barrier();
    auto jobs = job_directories(place);
    ASSERT_EQ(jobs.size(), 2U);
    auto const& others = before.front();
    auto const& mine = jobs[0] == others ? jobs[1] : jobs[0];
    auto const log = contents(others + "/rank0.data");
    plant([&] {
        return ::rename(mine.c_str(), place.path("away").c_str()) == 0 && ::symlink(others.c_str(), mine.c_str()) == 0;
    });
    file.flush();  // by what it holds open, whatever has its name
    EXPECT_EQ(contents(place.path("target")).size(), static_cast<std::size_t>(ranks()) * each);
    plant([&] { return ::unlink(mine.c_str()) == 0 && ::rename(others.c_str(), mine.c_str()) == 0; });
    auto const swapped = same_error_on_all_ranks([&] { file.close(); });
    expect_parts(swapped.text, {"somebody has moved the log away"});
    EXPECT_TRUE(contents(mine + "/rank0.data") == log) << "the other job's log";
    plant([&] {
        return ::rename(mine.c_str(), others.c_str()) == 0 && ::rename(place.path("away").c_str(), mine.c_str()) == 0;
    });
    other.close();
    for (int r = 0; r < ranks(); ++r) {
        auto const all = contents(place.path("other"));
        auto const part = stream(static_cast<std::uint64_t>(700 + r), each);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + r * each));
    }
}

TEST(Marker, OfAnotherUsersMakingStopsTheOpenWithOneLineAndNobodyWaits)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(true);
    auto const marker = place.path("target.tapioca");
    std::array<std::function<bool()>, 4> const plants = {
        [&] { return ::symlink(place.victim().c_str(), marker.c_str()) == 0; },
        [&] { return ::mkfifo(marker.c_str(), 0666) == 0; }, [&] { return ::mkdir(marker.c_str(), 0777) == 0; },
        [&] { return static_cast<bool>(std::ofstream(marker) << "tapioca stage 1\n"); }};
    for (auto const& put : plants) {
        plant(put);
        for (auto const mode : {Mode::create, Mode::read}) {
            auto const error = same_error_on_all_ranks(
                [&] { (void)File::open(MPI_COMM_WORLD, place.path("target"), mode, staged(place)); });
            EXPECT_EQ(error.code, Errc::invalid_state);
            expect_parts(error.text, {marker});
        }
        EXPECT_FALSE(stage::read_marker(place.path("target")));
        barrier();
        if (rank() == 0) fs::remove(marker);
    }
    place.expect_victim_untouched();
}

TEST(LogsBesideTheTarget, AreNotMadeThroughWhatOthersPutThere)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(true);
    auto options = staged(place);
    options.stage_size = 1;
    for (auto const* const ending : {".new.meta", ".new.data"}) {
        auto const name = place.path("target.tapioca.rank0") + ending;
        plant([&] { return ::symlink(place.victim().c_str(), name.c_str()) == 0; });
        auto file = File::open(MPI_COMM_WORLD, place.path("target"), Mode::create, options);
        EXPECT_EQ(caught([&] { write(file, 1); }).code != Errc::ok, rank() == 0) << "a rank writes to its log alone";
        auto const error = same_error_on_all_ranks([&] { file.close(); });  // where all hear of it
        expect_parts(error.text, {name});
        barrier();
        if (rank() == 0) {
            EXPECT_TRUE(fs::is_symlink(name));
            fs::remove(name);
            EXPECT_FALSE(fs::exists(place.path("target.tapioca")));
        }
        barrier();
    }
    place.expect_victim_untouched();
}

TEST(Report, IsNotWrittenThroughALinkUnderItsFirstName)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(true);
    Options options;
    options.report = place.path("report.json");
    // As it was once made: from what everybody can see of a process.
    std::string text;
    std::getline(std::ifstream("/proc/self/stat"), text);
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string start;
    for (int i = 3; i <= 22; ++i) fields >> start;
    auto const temporary = fmt::format("{}.{}-{}.tmp", *options.report, ::getpid(), start);
    plant([&] { return ::symlink(place.victim().c_str(), temporary.c_str()) == 0; });
    auto file = File::open(MPI_COMM_WORLD, place.path("target"), Mode::create, options);
    write(file, 1);
    file.close();
    barrier();
    EXPECT_TRUE(fs::is_regular_file(*options.report));
    place.expect_victim_untouched();
}

TEST(Report, ThatIsAPipeOrADeviceIsLeftAloneAndNobodyWaits)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(true);
    Options options;
    options.report = place.path("report.json");
    plant([&] { return ::mkfifo(options.report->c_str(), 0666) == 0; });
    auto file = File::open(MPI_COMM_WORLD, place.path("target"), Mode::create, options);
    write(file, 1);
    file.close();
    barrier();
    EXPECT_TRUE(fs::is_fifo(*options.report));
}

TEST(Report, DoesNotGoOnWithWhatAnotherUserWrote)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    SharedPlace const place(true);
    Options options;
    options.report = place.path("report.json");
    plant([&] {
        std::ofstream(*options.report) << "{\"evil\": 1";
        return ::truncate(options.report->c_str(), std::int64_t{1} << 40) == 0;  // reading it would take for ever
    });
    auto file = File::open(MPI_COMM_WORLD, place.path("target"), Mode::create, options);
    write(file, 1);
    file.close();
    barrier();
    EXPECT_LT(fs::file_size(*options.report), 1U << 20);
}

TEST(Target, ThatIsAPipeIsAnErrorOnAllRanksAndNobodyWaits)
{
    Scratch const scratch;
    auto const pipe = scratch.path("pipe");
    if (rank() == 0) {
        EXPECT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
    }
    barrier();
    for (auto const mode : {Mode::read, Mode::update, Mode::create}) {
        auto const error = same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, pipe, mode); });
        EXPECT_EQ(error.sys_errno, ESPIPE);
    }
    expect_next_file_works(scratch);
}

}  // namespace
}  // namespace tapioca::test
