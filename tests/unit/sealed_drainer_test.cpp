// The thread that drains subfiles beside the program: what has room on the tier, how a drain that failed is tried
// again, and what is made durable there until it is drained.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include <sys/statvfs.h>

#include "machine/cores.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/sealed_drainer.hpp"
#include "support/stand_in.hpp"
#include "support/subfile_sets.hpp"

namespace {

/// The file system of which the stand-in for statvfs() speaks.
struct {
    std::string path;
    std::uint64_t blocks = 0;
} small;
constexpr std::uint64_t block = 512;

/// Which allocations fail, of other threads than those that spare themselves, counted from 1. first = 0: none.
struct {
    std::atomic<int> first = 0, last = 0, seen = 0;
} lack;
thread_local bool is_spared = false;

}  // namespace

EXPORTED int statvfs(char const* path, struct statvfs* facts) noexcept
{
    if (small.path.empty() || small.path != path) {
        tapioca::core::Descriptor const file(::open(path, O_PATH | O_CLOEXEC));
        return ::fstatvfs(file.get(), facts);
    }
    *facts = {};
    facts->f_frsize = block;
    facts->f_bsize = 8 * block;
    facts->f_bavail = small.blocks;
    facts->f_bfree = facts->f_blocks = 8 * small.blocks + 8;  // what only root may use is no room
    return 0;
}

[[gnu::visibility("default")]] void* operator new(std::size_t bytes)
{
    int const number = lack.first > 0 && !is_spared ? ++lack.seen : 0;
    bool const fails = number > 0 && number >= lack.first && number <= lack.last;
    void* const memory = fails ? nullptr : std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}
[[gnu::visibility("default")]] void operator delete(void* memory) noexcept
{
    std::free(memory);
}
[[gnu::visibility("default")]] void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

namespace tapioca::subfile {
namespace {

using faults::Armed;
using faults::Kind;
using faults::Op;
using test::failure_of;
using test::some_set;
using Room = SealedDrainer::Room;
using Sealed = SealedDrainer::Sealed;

constexpr std::uint64_t plenty = std::uint64_t{1} << 40;
constexpr std::uint64_t spare = std::uint64_t{1} << 20;

/// While an object of this class exists, so many bytes are free in a directory.
class FreeBytes {
public:
    FreeBytes(std::string const& path, std::uint64_t bytes)
    {
        small.path = path;
        small.blocks = bytes / block;
    }
    FreeBytes(FreeBytes const&) = delete;
    FreeBytes& operator=(FreeBytes const&) = delete;
    ~FreeBytes() { small.path.clear(); }
};

class SealedDrainerTest : public testing::Test {
protected:
    SealedDrainerTest()
    {
        is_spared = true;
        std::filesystem::create_directory(directory_);
        EXPECT_EQ(failure_of(make_tier_place(place_, some_set, {"ssd:/scratch", "/files/a"})), "");
    }
    [[nodiscard]] std::unique_ptr<SealedDrainer> drainer(std::uint64_t most = plenty, std::uint64_t groups = 1) const
    {
        return std::make_unique<SealedDrainer>(SealedDrainer::Where{directory_, place_, some_set, most, groups},
                                               machine::allowed_cores());
    }
    [[nodiscard]] std::string on_tier(std::uint32_t number) const { return place_ + "/" + subfile_name(number); }
    [[nodiscard]] std::string in_directory(std::uint32_t number) const
    {
        return directory_ + "/" + subfile_name(number);
    }
    static test::SetBytes data_of(Sealed const& subfile)
    {
        test::SetBytes bytes(subfile.bytes);
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + subfile.number);
        return bytes;
    }
    [[nodiscard]] Sealed written(std::uint32_t number, std::uint64_t bytes = 1000) const
    {
        Sealed const subfile{number, bytes};
        test::put_file(on_tier(number), data_of(subfile));
        return subfile;
    }
    /// While this is kept, no drain of the subfile gets further than its beginning: as if somebody were writing to it.
    [[nodiscard]] core::Descriptor hold(std::uint32_t number) const
    {
        core::Descriptor file(::open(on_tier(number).c_str(), O_RDWR | O_CLOEXEC));
        EXPECT_TRUE(file);
        wait_for_lock(file.get(), Sharing::with_others);
        return file;
    }
    /// What happens when a drain of this subfile makes its copy durable.
    [[nodiscard]] Armed in_drain_of(std::uint32_t number, Kind kind = Kind::error, int error = ENOMEM) const
    {
        auto const copy = directory_ + "/" + draining_name(number);
        test::put_file(copy, {});
        return {copy, Op::sync, kind, 1, error};
    }
    /// Whether it ends; without a bound, a test of a drain that is forgotten would hang.
    static bool ends(SealedDrainer& drainer)
    {
        constexpr int most_turns = 40;
        for (int turn = 0; turn < most_turns; ++turn)
            if (drainer.wait_for_end()) return true;
        return false;
    }
    static Errc code_of(core::Status const& status) { return status ? Errc::ok : status.error().code; }
    /// Where the subfile is, with all its bytes.
    [[nodiscard]] std::string place_of(Sealed const& subfile) const
    {
        auto const is_whole = [&](std::string const& path) { return test::file_bytes(path) == data_of(subfile); };
        bool const drained = std::filesystem::exists(in_directory(subfile.number));
        bool const left = std::filesystem::exists(on_tier(subfile.number));
        if (drained == left) return drained ? "both" : "nowhere";
        if (!is_whole(drained ? in_directory(subfile.number) : on_tier(subfile.number))) return "incomplete";
        return drained ? "directory" : "tier";
    }

    test::SetScratch const scratch_;
    std::string const directory_ = scratch_.path("a.subfiles");
    std::string const place_ = tier_place(scratch_.path(""), some_set);
};

TEST_F(SealedDrainerTest, BringsWhatIsAddedToTheDirectory)
{
    auto const one = drainer();
    auto const subfiles = {written(1), written(2, 0), written(7, 300'000)};
    for (auto const& subfile : subfiles) one->add(subfile);
    EXPECT_TRUE(ends(*one));
    EXPECT_EQ(failure_of(one->status()), "");
    for (auto const& subfile : subfiles) EXPECT_EQ(place_of(subfile), "directory") << subfile.number;
    EXPECT_EQ(one->counts().subfiles, 3U);
    EXPECT_EQ(one->counts().bytes, 301'000U);
    one->add(written(8));
    EXPECT_TRUE(ends(*one));
    EXPECT_EQ(one->counts().subfiles, 4U) << "its thread waits for more";
}

TEST_F(SealedDrainerTest, HasRoomForAsManyBytesAsMayWait)
{
    FreeBytes const enough(place_, plenty);
    auto const one = drainer(1000);
    EXPECT_TRUE(one->has_room(1000, 0));
    EXPECT_FALSE(one->has_room(1001, 0));
    EXPECT_TRUE(one->has_room(400, 600));
    EXPECT_FALSE(one->has_room(400, 601));
    EXPECT_EQ(one->wait_for_room(1001, 0), Room::no) << "nothing is left to be drained";

    auto const subfile = written(1, 300);
    std::optional held(hold(1));
    one->add(subfile);
    one->add(subfile);  // which it has already
    EXPECT_TRUE(one->has_room(700, 0));
    EXPECT_FALSE(one->has_room(701, 0));
    EXPECT_EQ(one->wait_for_room(700, 0), Room::yes);
    EXPECT_EQ(one->wait_for_room(701, 0), Room::not_yet);
    held.reset();
    auto room = Room::not_yet;
    for (int turn = 0; room == Room::not_yet && turn < 40; ++turn) room = one->wait_for_room(701, 0);
    EXPECT_EQ(room, Room::yes);
    EXPECT_TRUE(ends(*one));
    EXPECT_TRUE(one->has_room(1000, 0));
}

TEST_F(SealedDrainerTest, EveryGroupOfTheNodeWantsAsMuchRoom)
{
    constexpr auto bytes = 100 * block;
    auto const alone = drainer(bytes);
    auto const of_three = drainer(bytes, 3);
    auto const has_room = [&](auto const& one, std::uint64_t free_bytes) {
        FreeBytes const some(place_, free_bytes);
        return one->has_room(bytes, 0);
    };
    EXPECT_TRUE(has_room(of_three, spare + 3 * bytes)) << "but what may wait is counted for each group";
    EXPECT_FALSE(has_room(of_three, spare + 3 * bytes - block));
    EXPECT_TRUE(has_room(alone, spare + bytes));
    EXPECT_FALSE(has_room(alone, spare + bytes - block)) << "the file system needs some for itself";
}

TEST_F(SealedDrainerTest, SeveralShareAPlace)
{
    auto const first = drainer(1000, 2);
    auto const second = drainer(1000, 2);
    auto const of_first = written(1, 1000);
    auto const of_second = written(2, 600);
    {
        FreeBytes const enough(place_, plenty);
        auto const held = hold(1);
        first->add(of_first);
        EXPECT_FALSE(first->has_room(1, 0));
        EXPECT_TRUE(second->has_room(1000, 0)) << "what a group may have there is its own";
        FreeBytes const full(place_, 0);
        EXPECT_EQ(second->wait_for_room(1, 0), Room::no) << "it does not wait for others";
        EXPECT_EQ(first->wait_for_room(1, 0), Room::not_yet);
    }
    EXPECT_TRUE(ends(*first));
    second->add(of_second);
    EXPECT_TRUE(ends(*second));
    EXPECT_EQ(place_of(of_first), "directory");
    EXPECT_EQ(place_of(of_second), "directory");
    EXPECT_TRUE(first->has_room(1000, 0)) << "whoever drains the last subfile leaves the place for those to come";
    EXPECT_TRUE(second->has_room(1000, 0));
    std::filesystem::remove_all(place_);
    EXPECT_FALSE(first->has_room(1, 0));
}

TEST_F(SealedDrainerTest, AFailedDrainIsTriedAgainWhenAsked)
{
    FreeBytes const enough(place_, plenty);
    auto const one = drainer(2000);
    auto const failing = written(1);
    auto const behind = written(2, 500);
    {
        auto const lack = in_drain_of(1);
        one->add(failing);
        EXPECT_TRUE(ends(*one));
        EXPECT_EQ(lack.fired(), 1);
    }
    EXPECT_EQ(code_of(one->status()), Errc::memory);
    one->add(behind);
    EXPECT_TRUE(one->wait_for_end()) << "nobody waits for what has failed";
    EXPECT_EQ(one->wait_for_room(501, 0), Room::no);
    EXPECT_EQ(one->wait_for_room(500, 0), Room::yes);
    EXPECT_EQ(one->counts().subfiles, 0U);
    EXPECT_EQ(place_of(failing), "tier");
    EXPECT_EQ(place_of(behind), "tier");

    one->try_again();
    EXPECT_TRUE(ends(*one));
    EXPECT_EQ(failure_of(one->status()), "");
    EXPECT_EQ(place_of(failing), "directory");
    EXPECT_EQ(place_of(behind), "directory");
    EXPECT_EQ(one->counts().subfiles, 2U);
    EXPECT_TRUE(one->has_room(2000, 0));
}

/// Whichever allocation of the drain fails, alone or with those behind it; its thread has left its loop then.
TEST_F(SealedDrainerTest, IsTriedAgainAfterALackOfMemory)
{
    constexpr int most = 1000;
    auto const one = drainer(1000);
    one->add(written(0));
    ASSERT_TRUE(ends(*one)) << "its thread is there";
    FreeBytes const enough(place_, plenty);
    int failed = 0;
    for (int first = 1; first < most; ++first) {
        auto const subfile = written(static_cast<std::uint32_t>(first));
        lack.seen = 0;
        lack.last = first % 2 == 0 ? most : first;
        lack.first = first;
        one->add(subfile);
        ASSERT_TRUE(ends(*one)) << first;
        lack.first = 0;
        ASSERT_EQ(code_of(one->status()), lack.seen >= first ? Errc::memory : Errc::ok) << first;
        if (one->status()) break;
        ++failed;
        ASSERT_EQ(failure_of(one->status()), "there is not enough memory to drain a subfile") << first;
        ASSERT_FALSE(one->has_room(1, 0)) << first;
        ASSERT_EQ(one->wait_for_room(1, 0), Room::no) << first;
        one->try_again();
        ASSERT_TRUE(ends(*one)) << first;
        ASSERT_EQ(failure_of(one->status()), "") << first;
        ASSERT_EQ(place_of(subfile), "directory") << first;
        ASSERT_TRUE(one->has_room(1000, 0)) << first;
    }
    EXPECT_GT(failed, 10);
    EXPECT_EQ(one->counts().subfiles, static_cast<std::uint64_t>(failed) + 2);
}

TEST_F(SealedDrainerTest, SyncMakesDurableWhatWaitsAndWhatIsBeingDrained)
{
    auto const one = drainer();
    for (std::uint32_t const number : {1, 2, 3}) (void)written(number);
    auto const held = hold(1);
    for (std::uint32_t const number : {1, 2, 3}) one->add({number, 1000});
    EXPECT_EQ(failure_of(one->sync()), "");
    for (std::uint32_t const number : {1, 2, 3}) {
        Armed const fault(on_tier(number), Op::sync, Kind::error, 1, EIO);
        auto const said = failure_of(one->sync());
        EXPECT_EQ(fault.fired(), 1) << number;
        EXPECT_NE(said.find(subfile_name(number)), std::string::npos) << said;
    }
}

TEST_F(SealedDrainerTest, SyncMakesDurableWhatCouldNotBeDrained)
{
    auto const one = drainer();
    auto const subfile = written(1);
    {
        auto const lack = in_drain_of(1);
        one->add(subfile);
        EXPECT_TRUE(ends(*one));
    }
    ASSERT_FALSE(one->status());
    EXPECT_EQ(failure_of(one->sync()), "") << "an error of the drain is not one of the data on the tier";
    Armed const fault(on_tier(1), Op::sync, Kind::error, 1, EIO);
    EXPECT_EQ(code_of(one->sync()), Errc::io);
    EXPECT_EQ(fault.fired(), 1);
}

TEST_F(SealedDrainerTest, SyncMakesDurableWhatWasNotAdded)
{
    auto const one = drainer();
    auto const added = written(1);
    auto const other = written(2);
    std::optional held(hold(1));
    one->add(added);
    EXPECT_EQ(failure_of(one->sync({other})), "");
    for (std::uint32_t const number : {1, 2}) {
        Armed const fault(on_tier(number), Op::sync, Kind::error, 1, EIO);
        EXPECT_EQ(code_of(one->sync({other})), Errc::io) << number;
        EXPECT_EQ(fault.fired(), 1) << number;
    }
    held.reset();
    EXPECT_TRUE(ends(*one));
    EXPECT_EQ(place_of(added), "directory");
    EXPECT_EQ(place_of(other), "tier");
}

TEST_F(SealedDrainerTest, SyncMakesTheirNamesDurable)
{
    auto const one = drainer();
    auto const other = written(2);
    Armed const fault(std::filesystem::path(on_tier(2)).parent_path(), Op::sync, Kind::error, 1, EIO);
    EXPECT_EQ(code_of(one->sync({other})), Errc::io);
    EXPECT_EQ(fault.fired(), 1);
}

TEST_F(SealedDrainerTest, SyncLeavesOutWhatWasDrainedMeanwhile)
{
    auto const one = drainer();
    one->add(written(1));
    EXPECT_TRUE(ends(*one));
    {
        Armed const fault(in_directory(1), Op::sync, Kind::error, 1, EIO);
        EXPECT_EQ(failure_of(one->sync()), "");
        EXPECT_EQ(fault.fired(), 0);
    }
    auto const behind = written(4);
    (void)written(2);
    auto const held = hold(2);
    one->add({2, 1000});
    one->add({3, 1000});  // which is not on the tier any more
    one->add(behind);
    EXPECT_EQ(failure_of(one->sync()), "");
    Armed const fault(on_tier(4), Op::sync, Kind::error, 1, EIO);
    EXPECT_EQ(code_of(one->sync()), Errc::io) << "those behind it are made durable";
}

TEST_F(SealedDrainerTest, SyncFailsIfASubfileCannotBeOpened)
{
    auto const one = drainer();
    (void)written(1);
    auto const held = hold(1);
    one->add({1, 1000});
    std::filesystem::create_symlink(subfile_name(1), on_tier(2));
    one->add({2, 1000});
    auto const said = failure_of(one->sync());
    EXPECT_NE(said.find("subfile.2: is not a plain file"), std::string::npos) << said;
}

TEST_F(SealedDrainerTest, GoesWhenTheSubfileThatIsBeingDrainedIsThere)
{
    auto one = drainer();
    auto const subfile = written(1);
    auto const slow = in_drain_of(1, Kind::stall);
    one->add(subfile);
    while (slow.fired() == 0) std::this_thread::yield();
    one.reset();
    EXPECT_EQ(place_of(subfile), "directory");
}

TEST_F(SealedDrainerTest, LeavesOnTheTierWhatCouldNotBeDrainedWhenItGoes)
{
    auto one = drainer();
    auto const failing = written(1);
    auto const behind = written(2);
    auto const lack = in_drain_of(1);
    one->add(failing);
    EXPECT_TRUE(ends(*one));
    one->add(behind);
    one.reset();
    EXPECT_EQ(lack.fired(), 1);
    EXPECT_EQ(place_of(failing), "tier");
    EXPECT_EQ(place_of(behind), "tier");
}

}  // namespace
}  // namespace tapioca::subfile
