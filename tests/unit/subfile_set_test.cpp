// Sets of subfiles in a directory: what SetWriter adds, SetTarget reads; who has the lock, what is left after a kill,
// what completion removes, and what is refused.
#include <fstream>
#include <functional>
#include <random>

#include <sys/mount.h>
#include <sys/stat.h>

#include "subfile/directory_files.hpp"
#include "subfile/recover.hpp"
#include "subfile/set_target.hpp"
#include "subfile/split.hpp"
#include "support/subfile_sets.hpp"

namespace tapioca::subfile {
namespace {

namespace fs = std::filesystem;
using test::expect;
using test::failure_of;
using test::SetJob;
using test::SetScratch;
using test::some_set;

/// The set as one file.
class Whole {
public:
    explicit Whole(std::string directory, target::OpenMode access = target::OpenMode::update)
        : target_(nullptr, std::move(directory), some_set, access)
    {
    }
    std::string read()
    {
        std::string text(expect(target_.size()), '?');
        auto const bytes = std::as_writable_bytes(std::span(text));
        EXPECT_EQ(expect(target_.read(0, bytes)), text.size());
        return text;
    }
    std::string failure()
    {
        auto const size = target_.size();
        if (!size) return size.error().text;
        std::vector<std::byte> bytes(*size);
        auto const read = target_.read(0, bytes);
        return read ? std::string() : read.error().text;
    }
    std::string write(std::int64_t offset, std::string const& text)
    {
        return failure_of(target_.write(offset, std::as_bytes(std::span(text))));
    }
    SetTarget& operator*() { return target_; }

private:
    SetTarget target_;
};

SetState state_of(std::string const& directory)
{
    auto const opened = expect(open_directory(directory));
    SetContents contents(opened.get(), some_set);
    EXPECT_EQ(failure_of(contents.refresh()), "");
    return contents.state();
}

std::string names_in(std::string const& directory)
{
    std::set<std::string> names;
    for (auto const& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
    std::string all;
    for (auto const& name : names) all += (all.empty() ? "" : " ") + name;
    return all;
}

bool contains(std::string const& text, std::string const& part)
{
    return text.find(part) != std::string::npos;
}

TEST(Set, IsReadWhileItIsWrittenAndAfterwards)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    SetJob job(directory, true, 2);
    Whole whole(directory);
    EXPECT_EQ(whole.read(), "");
    EXPECT_EQ(state_of(directory), SetState::live);
    job.advance();
    job.write(job.form({{{0, 2}, {4, 2}}, {{8, 2}}}, 0), 0, "aabbcc", 0);
    job.write(job.form({{{2, 2}, {6, 2}}}, 1), 0, "ddee", 1);
    EXPECT_EQ(whole.read(), "aaddbbeecc");
    EXPECT_EQ(whole.write(1, "1234"), "") << "where these bytes are";
    EXPECT_EQ(whole.read(), "a1234beecc");
    EXPECT_FALSE(fs::exists(directory + "/rest"));
    EXPECT_EQ(whole.write(12, "zz"), "") << "elsewhere";
    EXPECT_EQ(whole.read(), std::string("a1234beecc\0\0zz", 14));
    job.write_at(3, "XXXXXXXXXX", 1);
    EXPECT_EQ(whole.read(), "a12XXXXXXXXXXz") << "a later chunk wins";
    EXPECT_EQ(failure_of(job.complete()), "");
    EXPECT_EQ(state_of(directory), SetState::complete);
    EXPECT_EQ(names_in(directory), "index rest subfile.0 subfile.1");
    EXPECT_EQ(whole.read(), "a12XXXXXXXXXXz");
    EXPECT_EQ(Whole(directory, target::OpenMode::read).read(), "a12XXXXXXXXXXz");
}

TEST(Set, ReadsIntoAnyMemory)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    SetJob job(directory, true);
    std::string data;
    for (int i = 0; i < 3000; ++i) data += std::to_string(i);
    job.write_at(0, data);
    Whole whole(directory);
    std::mt19937_64 random(5);
    for (int trial = 0; trial < 50; ++trial) {
        std::vector<std::string> parts;
        std::vector<iovec> vectors;
        for (auto left = test::pick(random, 0, 12'000); left > 0;) {
            parts.emplace_back(static_cast<std::size_t>(test::pick(random, 0, std::min<std::int64_t>(left, 2000))),
                               '?');
            left -= static_cast<std::int64_t>(parts.back().size());
        }
        std::string all;
        for (auto& part : parts) vectors.push_back({part.data(), part.size()});
        auto const at = test::pick(random, 0, 12'000);
        auto const bytes = expect((*whole).read(at, std::span(vectors)));
        for (auto const& part : parts) all += part;
        auto const from = std::min(static_cast<std::size_t>(at), data.size());
        EXPECT_EQ(all.substr(0, bytes), data.substr(from, all.size()));
    }
}

TEST(Set, WritesInAnyMemoryInBlocks)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    SetJob job(directory, true);
    job.write_at(1 << 20, std::string(1 << 20, 'c'));
    Whole whole(directory);
    std::string image(9 << 20, '\0'), more = "0123456789";
    for (auto& c : image) c = static_cast<char>('A' + (&c - image.data()) % 17);
    std::vector<iovec> vectors = {{image.data(), image.size()}, {nullptr, 0}, {more.data(), more.size()}};
    EXPECT_EQ(failure_of((*whole).write(3, std::span(vectors))), "");
    EXPECT_TRUE(whole.read() == std::string(3, '\0') + image + more);
    EXPECT_EQ(fs::file_size(directory + "/subfile.0"), 1U << 20);
}

TEST(Set, GrowsAndIsCut)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    SetJob job(directory, true);
    Whole whole(directory);
    job.write_at(0, "0123456789");
    job.write_at(20, "abcdefghij");
    EXPECT_EQ(failure_of((*whole).grow(40)), "");
    EXPECT_EQ(whole.read().size(), 40U);
    EXPECT_EQ(failure_of((*whole).grow(5)), "");
    EXPECT_EQ(whole.read().size(), 40U);
    EXPECT_EQ(expect((*whole).end_of_chunks()), 30);
    job.cut(24);
    EXPECT_EQ(failure_of((*whole).resize_rest(24)), "");
    EXPECT_EQ(whole.read(), std::string("0123456789\0\0\0\0\0\0\0\0\0\0abcd", 24));
    EXPECT_EQ(failure_of((*whole).grow(28)), "");
    EXPECT_EQ(whole.read(), std::string("0123456789\0\0\0\0\0\0\0\0\0\0abcd\0\0\0\0", 28))
        << "what was cut off is gone";
    EXPECT_EQ(whole.write(25, "!"), "");
    EXPECT_EQ(whole.read(), std::string("0123456789\0\0\0\0\0\0\0\0\0\0abcd\0!\0\0", 28));
    EXPECT_EQ(failure_of(job.complete()), "");
    EXPECT_EQ(whole.read(), std::string("0123456789\0\0\0\0\0\0\0\0\0\0abcd\0!\0\0", 28));
}

TEST(Set, TakesOneJobAtATime)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    WriterFacts const facts{1, 1, 2, "node", "a"};
    SetJob job(directory, true, 3);
    job.write_at(0, "first", 2);
    auto const opened = expect(open_directory(directory));
    SetContents contents(opened.get(), some_set);
    ASSERT_TRUE(contents.refresh());
    EXPECT_FALSE(expect(take_lock(opened.get(), contents, some_set, facts))) << "it has the lock";
    EXPECT_FALSE(make_set(directory, some_set, facts));
    EXPECT_EQ(contents.writer().groups, 3U);
    EXPECT_EQ(std::string(contents.writer().name), "a");
    ASSERT_TRUE(job.complete());
    EXPECT_FALSE(expect(take_lock(opened.get(), contents, some_set, facts))) << "the set is another one than was seen";
    EXPECT_EQ(Whole(directory).read(), "first");
    ASSERT_TRUE(contents.refresh());
    EXPECT_EQ(contents.head().generation, 1U);
    EXPECT_EQ(contents.next_subfile(), 3U);
    auto const lock = expect(take_lock(opened.get(), contents, some_set, facts));
    EXPECT_TRUE(lock);
    EXPECT_EQ(state_of(directory), SetState::live);
    SetContents other(opened.get(), some_set);
    ASSERT_TRUE(other.refresh());
    EXPECT_EQ(other.next_subfile(), 5U);
    EXPECT_FALSE(expect(take_lock(opened.get(), other, some_set, facts)));
}

TEST(Set, TakesNoLockForWhatItHasNotSeen)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    WriterFacts const facts{1, 1, 1, "node", "a"};
    {
        SetJob job(directory, true);
        job.write_at(0, "first");
        ASSERT_TRUE(job.complete());
    }
    auto const opened = expect(open_directory(directory));
    SetContents contents(opened.get(), some_set);
    ASSERT_TRUE(contents.refresh());
    {
        SetJob between(directory, false);
        between.write_at(5, " second");
        ASSERT_TRUE(between.complete());
    }
    EXPECT_FALSE(expect(take_lock(opened.get(), contents, some_set, facts))) << "subfile.1 would be removed";
    EXPECT_EQ(Whole(directory).read(), "first second");
    {
        SetJob killed(directory, false);
        killed.write_at(5, " third!");
        killed.die();
    }
    auto const refused = take_lock(opened.get(), contents, some_set, facts);
    EXPECT_TRUE(refused && !*refused) << "it was not interrupted when it was looked at";
    ASSERT_TRUE(contents.refresh());
    EXPECT_EQ(contents.state(), SetState::interrupted);
    EXPECT_FALSE(take_lock(opened.get(), contents, some_set, facts));
    EXPECT_EQ(Whole(directory).read(), "first third!");
    ASSERT_TRUE(complete_set(opened.get(), some_set, true));
    EXPECT_EQ(Whole(directory).read(), "first third!");
}

TEST(Set, GivesNoLockOfAJobThatDiesWhileItIsLookedAt)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    {
        SetJob job(directory, true);
        job.write_at(0, "first");
        ASSERT_TRUE(job.complete());
    }
    auto const opened = expect(open_directory(directory));
    SetContents contents(opened.get(), some_set);
    {
        SetJob killed(directory, false);
        killed.write_at(5, " second");
        ASSERT_TRUE(contents.refresh());
        EXPECT_EQ(contents.state(), SetState::live);
        killed.die();
    }
    auto const taken = take_lock(opened.get(), contents, some_set, {1, 1, 1, "node", "a"});
    EXPECT_EQ(taken ? "" : taken.error().text, "the job that wrote these subfiles has not completed the set");
    ASSERT_TRUE(complete_set(opened.get(), some_set, true));
    EXPECT_EQ(Whole(directory).read(), "first second");
}

TEST(Set, KeepsTheNumbersOfAJobThatDiedBeforeItsFirstChunk)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    {
        SetJob job(directory, true);
        job.write_at(0, "first");
        ASSERT_TRUE(job.complete());
    }
    auto const opened = expect(open_directory(directory));
    auto const next = [&] {
        SetContents contents(opened.get(), some_set);
        EXPECT_TRUE(contents.refresh());
        EXPECT_EQ(contents.state(), SetState::complete);
        return contents.next_subfile();
    };
    auto const as_others_do = [&] {  // such as a drain or a join that is given up
        SetContents contents(opened.get(), some_set);
        EXPECT_TRUE(contents.refresh());
        auto const lock = expect(take_lock(opened.get(), contents, some_set, {1, 1, 0, "drain", "a"}));
        EXPECT_TRUE(lock);
        give_back_lock(opened.get(), contents);
    };
    auto const before = next();
    as_others_do();
    EXPECT_EQ(next(), before);
    EXPECT_FALSE(fs::exists(directory + "/writer"));
    SetJob(directory, false).die();
    auto const with_its = next();
    EXPECT_GT(with_its, before);
    for (int i = 0; i < 2; ++i) {
        as_others_do();
        EXPECT_EQ(next(), with_its) << "what it has begun may lie on a node";
    }
    std::ofstream(directory + "/" + subfile_name(with_its + 5)) << "left";
    SetJob(directory, false).die();
    EXPECT_FALSE(fs::exists(directory + "/" + subfile_name(with_its + 5)));
}

TEST(Set, OfAKilledJobIsCompletedWithWhatItHasWritten)
{
    SetScratch const scratch;
    auto const path = scratch.path("two words");
    auto const directory = path + ".subfiles";
    Stub const stub{some_set, "two words.subfiles"};
    {
        SetJob job(directory, true, 2);
        job.die();
        EXPECT_EQ(state_of(directory), SetState::interrupted) << "there is no index yet";
    }
    fs::remove_all(directory);
    {
        SetJob job(directory, true, 2);
        job.write_at(0, "abc", 1);
        EXPECT_TRUE(check_usable(path, stub));
        job.die();
    }
    EXPECT_EQ(state_of(directory), SetState::interrupted);
    auto const unusable = failure_of(check_usable(path, stub));
    EXPECT_TRUE(contains(unusable, "`tapioca subfile recover '" + path + "'` completes")) << unusable;
    auto const opened = expect(open_directory(directory));
    EXPECT_EQ(failure_of(complete_set(opened.get(), some_set, true)), "");
    EXPECT_TRUE(check_usable(path, stub));
    EXPECT_EQ(Whole(directory).read(), "abc");
    EXPECT_EQ(names_in(directory), "index subfile.1");
    // A later job that wrote nothing is not missed, and its numbers are not used again.
    {
        SetJob job(directory, false, 4);
        job.die();
    }
    EXPECT_EQ(state_of(directory), SetState::complete);
    SetJob next(directory, false);
    EXPECT_EQ(next.writer().subfile(), 6U);
    next.write_at(3, "def");
    EXPECT_EQ(failure_of(next.complete()), "");
    EXPECT_EQ(Whole(directory).read(), "abcdef");
    EXPECT_EQ(names_in(directory), "index subfile.1 subfile.6");
}

/// A small file system with a set, which can be filled up.
class SetOnFullDisk : public testing::Test {
protected:
    static constexpr std::size_t tail_bytes = 30'000;

    void SetUp() override
    {
        fs::create_directory(small_);
        if (::mount("tmpfs", small_.c_str(), "tmpfs", 0, "size=256k") != 0) GTEST_SKIP() << "cannot mount";
    }
    void TearDown() override { ::umount2(small_.c_str(), MNT_DETACH); }
    void fill_up() const
    {
        std::ofstream filler(small_ + "/filler", std::ios::binary);
        while (filler << std::string(4096, 'f') << std::flush) continue;
    }
    void make_room() const { fs::remove(small_ + "/filler"); }
    [[nodiscard]] std::string subfile(int number) const { return directory_ + "/" + subfile_name(number); }
    /// As a step that fails does.
    void leave_tail(int number) const
    {
        std::ofstream file(subfile(number), std::ios::binary | std::ios::app);
        file << std::string(tail_bytes, 't') << std::flush;
        EXPECT_TRUE(file);
    }

    SetScratch scratch_;
    std::string small_ = scratch_.path("small");
    std::string path_ = small_ + "/a";
    std::string directory_ = path_ + ".subfiles";
    Stub stub_{some_set, "a.subfiles"};
    std::string data_ = std::string(10'001, 'd');
};

TEST_F(SetOnFullDisk, IsCompletedWithTheRoomOfWhatFailedStepsHaveLeft)
{
    SetJob job(directory_, true, 3);
    job.write_at(0, data_);
    job.write_at(20'000, "end");
    job.write_at(30'000, "other", 1);
    auto const first = fs::file_size(subfile(0));
    auto const before = Whole(directory_).read();
    for (int group = 0; group < 3; ++group) leave_tail(group);
    fill_up();
    EXPECT_EQ(failure_of(job.complete(true)), "");
    EXPECT_EQ(state_of(directory_), SetState::complete);
    EXPECT_EQ(Whole(directory_).read(), before);
    EXPECT_EQ(fs::file_size(subfile(0)), first);
    EXPECT_EQ(fs::file_size(subfile(1)), 5U);
    EXPECT_EQ(names_in(directory_), "index subfile.0 subfile.1");
}

TEST_F(SetOnFullDisk, KeepsTheTailsIfThereIsRoom)
{
    SetJob job(directory_, true);
    job.write_at(0, data_);
    leave_tail(0);
    EXPECT_EQ(failure_of(job.complete()), "");
    EXPECT_EQ(fs::file_size(subfile(0)), data_.size() + tail_bytes);
}

TEST_F(SetOnFullDisk, SaysWhatToDoAndIsRecoveredWithMoreRoom)
{
    {
        SetJob job(directory_, true);
        job.write_at(0, data_);
        fill_up();
        auto const said = failure_of(job.complete());
        EXPECT_TRUE(contains(said, "No space left on device: 4096 bytes must be free for it")) << said;
    }
    EXPECT_EQ(state_of(directory_), SetState::interrupted);
    auto const found = recover_set(path_, stub_);
    ASSERT_FALSE(found);
    EXPECT_TRUE(contains(found.error().text, "4096 bytes must be free for it; what was written stays as it is"));
    EXPECT_TRUE(contains(found.error().text, "with more room, `tapioca subfile recover " + path_ + "` completes"));
    EXPECT_EQ(Whole(directory_).read(), data_);
    make_room();
    auto const recovered = recover_set(path_, stub_);
    ASSERT_TRUE(recovered && *recovered);
    EXPECT_EQ((*recovered)->chunks, 1U);
    EXPECT_EQ((*recovered)->lost, 0U);
    EXPECT_EQ(Whole(directory_).read(), data_);
}

TEST_F(SetOnFullDisk, OfAJobThatDiedIsRecoveredWithTheRoomOfWhatFailedStepsHaveLeft)
{
    {
        SetJob job(directory_, true);
        job.write_at(0, data_);
        job.cut(5000);
        leave_tail(0);
        job.die();
    }
    fill_up();
    auto const recovered = recover_set(path_, stub_);
    ASSERT_TRUE(recovered && *recovered) << (recovered ? "" : recovered.error().text);
    EXPECT_EQ((*recovered)->lost, 0U);
    EXPECT_EQ(fs::file_size(subfile(0)), data_.size()) << "what was cut off is a chunk's, too";
    EXPECT_EQ(Whole(directory_).read(), data_.substr(0, 5000));
}

TEST_F(SetOnFullDisk, LeavesSubfilesOfEarlierJobsAlone)
{
    {
        SetJob first(directory_, true);
        first.write_at(0, data_);
        ASSERT_TRUE(first.complete());
    }
    SetJob job(directory_, false);
    job.write_at(20'000, "second");
    leave_tail(0);
    leave_tail(1);
    fill_up();
    EXPECT_EQ(failure_of(job.complete()), "");
    EXPECT_EQ(fs::file_size(subfile(0)), data_.size() + tail_bytes);
    EXPECT_EQ(fs::file_size(subfile(1)), 6U);
}

TEST_F(SetOnFullDisk, LosesNothingThatMayBeAnothers)
{
    {
        SetJob first(directory_, true);
        first.write_at(0, data_);
        ASSERT_TRUE(first.complete());
    }
    leave_tail(0);
    SetJob job(directory_, false, 3);  // subfiles 1 to 3
    job.write_at(20'000, "second", 0);
    job.write_at(30'000, "third", 2);
    for (int group = 1; group <= 3; ++group) leave_tail(group);
    fs::create_hard_link(subfile(3), small_ + "/second name");
    fill_up();
    auto const sizes = [&] {
        std::vector<std::uintmax_t> all;
        for (int number = 0; number <= 3; ++number) all.push_back(fs::file_size(subfile(number)));
        return all;
    };
    auto const before = sizes();
    auto const tried = [&](WriterOfSet writer) {
        auto const status = complete_set(job.directory(), some_set, true, writer);
        EXPECT_TRUE(contains(failure_of(status), "must be free")) << failure_of(status);
        return sizes() == before;
    };
    EXPECT_TRUE(tried(WriterOfSet::closes_on_tier)) << "they may have come from the tier, or have another name";
    fs::remove(small_ + "/second name");
    job.die();
    EXPECT_TRUE(tried(WriterOfSet::closes)) << "without the lock";
    auto const lock = expect(open_in(job.directory(), writer_name, O_RDWR));
    ASSERT_TRUE(lock_alone(lock.get()));
    EXPECT_EQ(failure_of(complete_set(job.directory(), some_set, true, WriterOfSet::closes_on_tier)), "");
    EXPECT_EQ(fs::file_size(subfile(0)), before[0]) << "of an earlier job";
    EXPECT_EQ(fs::file_size(subfile(1)), before[1]) << "perhaps from the tier";
    EXPECT_EQ(fs::file_size(subfile(3)), 5U) << "of all ranks, never on the tier";
}

TEST(Set, IgnoresTheRecordThatIsBeingWritten)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    SetJob job(directory, true);
    job.write_at(0, "abc");
    auto const journal = directory + "/journal.0";
    auto const whole = test::file_bytes(journal);
    job.write_at(3, "def");
    auto const both = test::file_bytes(journal);
    auto const opened = expect(open_directory(directory));
    for (auto bytes = sizeof(SetHead); bytes <= both.size(); ++bytes) {
        test::put_file(journal, std::span(both).first(bytes));
        SetContents contents(opened.get(), some_set);
        ASSERT_EQ(failure_of(contents.refresh()), "") << bytes;
        auto const expected = bytes == both.size() ? 2U : bytes >= whole.size() ? 1U : 0U;
        ASSERT_EQ(contents.map().chunks(), expected) << bytes;
    }
    // As it grows, it is read on.
    test::put_file(journal, std::span(both).first(100));
    SetContents contents(opened.get(), some_set);
    for (std::size_t bytes = 100; bytes < both.size(); bytes += 40) {
        ::truncate(journal.c_str(), 0);
        test::put_file(journal, std::span(both).first(bytes));
        ASSERT_EQ(failure_of(contents.refresh()), "") << bytes;
    }
    test::put_file(journal, both);
    ASSERT_TRUE(contents.refresh());
    EXPECT_EQ(contents.map().chunks(), 2U);
}

TEST(Set, DoesNotGrowWhenTheSameIsWrittenAgain)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    std::uintmax_t size = 0;
    for (int opening = 0; opening < 6; ++opening) {
        SetJob job(directory, opening == 0, 2);
        std::string const text(40, static_cast<char>('a' + opening));
        job.write_at(0, text, 0);
        job.write_at(30, text, 1);
        ASSERT_EQ(failure_of(job.complete(opening % 2 == 0)), "");
        EXPECT_EQ(Whole(directory).read(), std::string(70, static_cast<char>('a' + opening)));
        auto const first = 2 * static_cast<std::uint32_t>(opening);
        EXPECT_EQ(names_in(directory), "index " + std::min(subfile_name(first), subfile_name(first + 1)) + " " +
                                           std::max(subfile_name(first), subfile_name(first + 1)));
        auto const index = fs::file_size(directory + "/index");
        EXPECT_TRUE(size == 0 || size == index);
        size = index;
    }
}

TEST(Set, HasReadersWhileSubfilesGo)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    {
        SetJob job(directory, true);
        job.write_at(0, "old data");
        ASSERT_TRUE(job.complete());
    }
    Whole early(directory), late(directory);
    EXPECT_EQ(early.read(), "old data");
    EXPECT_EQ(expect((*late).size()), 8U);
    SetJob job(directory, false);
    job.write_at(0, "new data");
    ASSERT_TRUE(job.complete());
    EXPECT_EQ(names_in(directory), "index subfile.1");
    EXPECT_EQ(early.read(), "new data");
    EXPECT_EQ(late.read(), "new data");
    EXPECT_EQ(late.write(0, "NEW"), "");
    EXPECT_EQ(early.read(), "NEW data");
}

TEST(Set, ToleratesWhatAKillLeavesBehind)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    {
        SetJob job(directory, true);
        job.write_at(0, "old data");
        ASSERT_TRUE(job.complete());
    }
    {
        SetJob job(directory, false);
        job.write_at(0, "new data");
        // As if it was killed between the new index and the removal of what is old.
        fs::create_directory(scratch.path("kept"));
        for (auto const* const name : {"subfile.0", "journal.1", "writer"})
            fs::copy_file(directory + "/" + name, scratch.path(std::string("kept/") + name));
        ASSERT_TRUE(job.complete());
        for (auto const* const name : {"subfile.0", "journal.1", "writer"})
            fs::copy_file(scratch.path(std::string("kept/") + name), directory + "/" + name);
        test::put_file(directory + "/index.new", {});
    }
    EXPECT_EQ(state_of(directory), SetState::complete);
    EXPECT_EQ(Whole(directory).read(), "new data");
    SetJob next(directory, false);
    EXPECT_EQ(next.writer().subfile(), 2U);
    next.write_at(8, "!");
    EXPECT_EQ(failure_of(next.complete()), "");
    EXPECT_EQ(Whole(directory).read(), "new data!");
    EXPECT_EQ(names_in(directory), "index subfile.1 subfile.2");
    // Completing once more changes nothing.
    test::put_file(directory + "/subfile.0", {});
    auto const opened = expect(open_directory(directory));
    EXPECT_EQ(failure_of(complete_set(opened.get(), some_set, true)), "");
    EXPECT_EQ(Whole(directory).read(), "new data!");
    EXPECT_EQ(names_in(directory), "index subfile.0 subfile.1 subfile.2");
}

TEST(Set, KeepsEverythingIfNobodyKnowsWhoWroteIt)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    SetJob job(directory, true);
    job.write_at(0, "data");
    test::put_file(directory + "/writer", {});
    EXPECT_TRUE(contains(failure_of(job.complete()), "who writes these subfiles"));
    EXPECT_EQ(names_in(directory), "journal.0 subfile.0 writer");
}

/// A complete set of one chunk, "some data".
class Complete {
public:
    Complete() : directory(scratch_.path("a.subfiles"))
    {
        SetJob job(directory, true);
        job.write_at(0, "some data");
        EXPECT_EQ(failure_of(job.complete()), "");
    }
    [[nodiscard]] std::string in(std::string const& name) const { return directory + "/" + name; }
    std::string failure() const { return Whole(directory).failure(); }
    /// Of the index with something changed, and its head sealed anew.
    std::string with(std::function<void(SetHead&, test::SetBytes&)> const& change) const
    {
        auto const whole = test::file_bytes(in("index"));
        SetHead head;
        std::memcpy(&head, whole.data(), sizeof head);
        test::SetBytes records(whole.begin() + sizeof head, whole.end());
        head.content_bytes = 0;
        change(head, records);
        if (head.content_bytes == 0) head.content_bytes = records.size();
        if (head.content_checksum != 1)
            head.content_checksum = stage::checksum_of(records.data(), records.size(), seed_of(some_set));
        seal(head);
        auto const first = std::as_bytes(std::span(&head, 1));
        test::SetBytes changed(first.begin(), first.end());
        changed.insert(changed.end(), records.begin(), records.end());
        test::put_file(in("index"), changed);
        auto said = failure();
        test::put_file(in("index"), whole);
        return said;
    }

private:
    SetScratch scratch_;

public:
    std::string directory;
};

TEST(Set, RefusesAnIndexThatIsDamaged)
{
    Complete const set;
    auto const append = [](test::SetBytes& to, test::SetBytes const& record) {
        to.insert(to.end(), record.begin(), record.end());
    };
    EXPECT_EQ(set.with([](SetHead&, test::SetBytes&) {}), "");
    EXPECT_TRUE(contains(set.with([](SetHead& head, test::SetBytes&) { head.version = 2; }), "version 2"));
    EXPECT_TRUE(contains(set.with([](SetHead& head, test::SetBytes&) { head.identity = {}; }), "another file"));
    EXPECT_TRUE(contains(set.with([](SetHead& head, test::SetBytes&) { head.content_checksum = 1; }), "checksum"));
    EXPECT_TRUE(contains(set.with([](SetHead& head, test::SetBytes&) { head.content_bytes = 8; }), "checksum"));
    EXPECT_TRUE(contains(set.with([](SetHead& head, test::SetBytes&) { head.subfiles = 0; }), "too many subfiles"));
    EXPECT_TRUE(contains(set.with([](SetHead& head, test::SetBytes&) { head.epoch = 0; }), "epoch is too late"));
    EXPECT_TRUE(contains(set.with([](SetHead&, test::SetBytes& records) { records.resize(records.size() - 8); }),
                         "record cannot be read"));
    EXPECT_TRUE(contains(set.with([](SetHead&, test::SetBytes& records) {
        records.erase(records.begin(), records.begin() + sizeof(SubfileRecord));
    }),
                         "without its size"));
    EXPECT_TRUE(
        contains(set.with([&](SetHead&, test::SetBytes& records) { append(records, test::chunk_of(0, 0, 1, 0, 4)); }),
                 "beyond the end of subfile 0"));
    auto const whole = test::file_bytes(set.in("index"));
    for (std::size_t i = 0; i < whole.size(); i += 3) {
        auto changed = whole;
        changed[i] ^= std::byte{0x40};
        test::put_file(set.in("index"), changed);
        EXPECT_NE(set.failure(), "") << "byte " << i;
    }
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
        test::put_file(set.in("index"), std::span(whole).first(bytes));
        EXPECT_NE(set.failure(), "") << bytes << " bytes";
    }
    // A reader that has seen it sound notices it, too, and goes on when it is sound again.
    test::put_file(set.in("index"), whole);
    Whole reader(set.directory);
    EXPECT_EQ(reader.read(), "some data");
    test::put_file(set.in("index"), std::span(whole).first(100));
    EXPECT_NE(reader.failure(), "");
    EXPECT_NE(reader.failure(), "");
    test::put_file(set.in("index"), whole);
    EXPECT_EQ(reader.read(), "some data");
}

TEST(Set, RefusesANoteThatIsDamaged)
{
    Complete const set;
    WriterNote note = {};
    auto const failure_with = [&](std::function<void(WriterNote&)> const& change) {
        note = {};
        std::memcpy(note.magic, note_magic, sizeof note.magic);
        note.identity = some_set;
        note.generation = 2;
        note.first_subfile = 1;
        note.groups = 1;
        change(note);
        note.checksum = stage::checksum_of(&note, offsetof(WriterNote, checksum));
        test::put_file(set.in("writer"), std::as_bytes(std::span(&note, 1)));
        return set.failure();
    };
    EXPECT_EQ(failure_with([](WriterNote&) {}), "");
    EXPECT_NE(failure_with([](WriterNote& changed) { changed.groups = most_groups + 1; }), "");
    EXPECT_NE(failure_with([](WriterNote& changed) { changed.first_subfile = UINT32_MAX; }), "");
    EXPECT_EQ(failure_with([](WriterNote& changed) { changed.identity = {}; }), "") << "left from another set";
    EXPECT_EQ(failure_with([](WriterNote& changed) { changed.magic[0] = 0; }), "") << "being written";
    EXPECT_EQ(failure_with([](WriterNote& changed) { changed.host[63] = 'x'; }), "");
    EXPECT_FALSE(make_set(set.directory, some_set, {1, 1, most_groups + 1, "", ""}));
    EXPECT_TRUE(fs::exists(set.in("index"))) << "nothing was removed";
}

TEST(Set, IgnoresJournalsOfOtherJobs)
{
    SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    SetJob job(directory, true);
    job.write_at(0, "abc");
    auto const journal = test::file_bytes(directory + "/journal.0");
    auto const with = [&](std::function<void(SetHead&)> const& change) {
        auto changed = journal;
        SetHead head;
        std::memcpy(&head, changed.data(), sizeof head);
        change(head);
        seal(head);
        std::memcpy(changed.data(), &head, sizeof head);
        test::put_file(directory + "/journal.0", changed);
        return Whole(directory).read();
    };
    EXPECT_EQ(with([](SetHead&) {}), "abc");
    EXPECT_EQ(with([](SetHead& head) { head.identity = {}; }), "");
    EXPECT_EQ(with([](SetHead& head) { head.generation = 2; }), "");
    EXPECT_EQ(with([](SetHead& head) { head.subfiles = 1; }), "");
    auto damaged = journal;
    damaged[100] ^= std::byte{1};
    test::put_file(directory + "/journal.0", damaged);
    EXPECT_NE(Whole(directory).failure(), "");
}

TEST(Set, IsIncompleteWithoutASubfile)
{
    Complete const set;
    fs::rename(set.in("subfile.0"), set.in("elsewhere"));
    auto const missing = set.failure();
    EXPECT_TRUE(contains(missing, "subfile.0") && contains(missing, "tapioca subfile verify")) << missing;
    EXPECT_NE(Whole(set.directory).write(0, "x"), "");
    EXPECT_EQ(Whole(set.directory).write(100, "x"), "") << "it has nothing to do with that subfile";
    auto const bytes = test::file_bytes(set.in("elsewhere"));
    test::put_file(set.in("subfile.0"), std::span(bytes).first(5));
    EXPECT_TRUE(contains(set.failure(), "shorter than the index says"));
}

TEST(Set, HasNothingButPlainFiles)
{
    Complete const set;
    auto const refused = [&] {
        return !Whole(set.directory).failure().empty() &&
               !Whole(set.directory, target::OpenMode::read).failure().empty();
    };
    for (auto const* const name : {"subfile.0", "index", "rest", "writer"}) {
        auto const at = set.in(name);
        auto const kept = set.in("kept");
        bool const there = fs::exists(at);
        if (there) fs::rename(at, kept);
        bool const matters = std::string(name) != "writer";
        if (there)
            fs::create_symlink("kept", at);
        else
            fs::create_symlink("subfile.0", at);
        EXPECT_TRUE(refused()) << name << ", a link";
        fs::remove(at);
        ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0);
        EXPECT_EQ(refused(), matters) << name << ", a fifo";
        fs::remove(at);
        fs::create_directory(at);
        EXPECT_EQ(refused(), matters) << name << ", a directory";
        fs::remove(at);
        if (there) fs::rename(kept, at);
        EXPECT_EQ(set.failure(), "") << name;
    }
    // The directory itself.
    fs::rename(set.directory, set.directory + ".moved");
    EXPECT_NE(set.failure(), "");
    fs::create_directory_symlink(set.directory + ".moved", set.directory);
    EXPECT_TRUE(contains(set.failure(), "directory of its subfiles"));
    EXPECT_FALSE(make_set(set.directory, some_set, {}));
    (void)remove_set(set.directory);
    EXPECT_EQ(names_in(set.directory + ".moved"), "index subfile.0");
}

TEST(Set, IsRemovedButForFilesOfOthers)
{
    Complete const set;
    test::put_file(set.in("subfile.x"), {});
    test::put_file(set.in("subfile.1"), {});
    EXPECT_TRUE(remove_set(set.directory));
    EXPECT_EQ(names_in(set.directory), "subfile.x");
    fs::remove(set.in("subfile.x"));
    EXPECT_TRUE(remove_set(set.directory));
    EXPECT_FALSE(fs::exists(set.directory));
    EXPECT_TRUE(remove_set(set.directory));
}

TEST(Set, GivesItsStubTheFirstBytes)
{
    SetScratch const scratch;
    auto const path = scratch.path("a"), directory = path + ".subfiles";
    SetJob job(directory, true);
    auto open = [&](target::OpenMode mode) {
        return SetTarget(expect(target::open_file(path, mode)), directory, some_set, target::OpenMode::update);
    };
    auto const beginning = [&] {
        auto const bytes = test::file_bytes(path);
        EXPECT_EQ(bytes.size(), stub_bytes);
        EXPECT_TRUE(expect(find_stub(path)));
        return std::string(reinterpret_cast<char const*>(bytes.data()), std::min<std::size_t>(bytes.size(), 8));
    };
    auto const write = [&](std::int64_t offset, std::string const& text) {
        auto target = open(target::OpenMode::update);
        EXPECT_EQ(failure_of(target.write(offset, std::as_bytes(std::span(text)))), "");
        EXPECT_EQ(failure_of(target.close()), "");
    };
    {
        auto target = open(target::OpenMode::create);
        ASSERT_TRUE(write_stub(target.descriptor(), {some_set, "a.subfiles"}));
        EXPECT_EQ(beginning(), "        ");
        job.write_at(0, "CDF5 and more");
        EXPECT_EQ(failure_of(target.keep_beginning()), "");
        EXPECT_EQ(beginning(), "CDF5 and");
        job.write_at(0, "CDF6 and more");
        EXPECT_EQ(failure_of(target.close()), "");
        EXPECT_EQ(beginning(), "CDF5 and") << "it has not written them";
    }
    write(8, "x");
    EXPECT_EQ(beginning(), "CDF5 and");
    write(7, "x");
    EXPECT_EQ(beginning(), "CDF6 anx");
}

TEST(Split, GivesItsStubTheFirstBytes)
{
    for (std::string const& text : {std::string("CDF\1\0\0\0\0\0\0 more"), std::string("short")}) {
        SetScratch const scratch;
        auto const path = scratch.path("a");
        test::put_file(path, std::as_bytes(std::span(text)));
        ASSERT_EQ(failure_of(split(path, 2, [](std::uint64_t) {}).map([](auto) {})), "");
        auto const bytes = test::file_bytes(path);
        EXPECT_EQ(bytes.size(), stub_bytes);
        EXPECT_EQ(std::string(reinterpret_cast<char const*>(bytes.data()), 8),
                  text.size() < 8 ? "        " : text.substr(0, 8));
        auto const stub = expect(find_stub(path));
        ASSERT_TRUE(stub);
        SetTarget target(nullptr, beside(path, stub->directory), stub->identity, target::OpenMode::read);
        std::string read(text.size(), '?');
        EXPECT_EQ(expect(target.read(0, std::as_writable_bytes(std::span(read)))), text.size());
        EXPECT_EQ(read, text);
    }
}

TEST(Set, OfAChangedStubIsFoundWhereTheStubSays)
{
    SetScratch const scratch;
    auto const path = scratch.path("a");
    for (auto const* const directory : {"/a.subfiles", "/a.2.subfiles"}) {
        SetJob job(path + std::string(directory).substr(2), true);
        job.write_at(0, directory);
        ASSERT_TRUE(job.complete());
    }
    auto const put = [&](std::string const& file, std::string const& text) {
        test::put_file(scratch.path(file), std::as_bytes(std::span(text)));
    };
    put("moved", to_text({some_set, "a.subfiles"}));
    auto text = to_text({some_set, "a.2.subfiles"});
    text.resize(stub_bytes - 3);
    put("a", text);
    core::Descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_NE(failure_of(check_remains(path, file.get(), text.size())).find("/a.2.subfiles, and was changed"),
              std::string::npos);
    EXPECT_EQ(failure_of(restore_stub(path)), "");
    auto const stub = find_stub(path);
    ASSERT_TRUE(stub);
    ASSERT_TRUE(*stub);
    EXPECT_EQ((*stub)->directory, "a.2.subfiles");
    // Without its name, the usual directory is tried; but that is needed by another file.
    auto const line = text.find("directory: ");
    text[line] = 'D';
    put("a", text);
    EXPECT_NE(failure_of(restore_stub(path)).find("is a copy of the stub of another file"), std::string::npos);
    EXPECT_TRUE(find_stub(scratch.path("moved")));
}

TEST(Set, OnATierKeepsNumbersThatKilledJobsMayHaveUsed)
{
    SetScratch const scratch;
    for (bool const on_tier : {false, true}) {
        auto const directory = scratch.path(on_tier ? "tier.subfiles" : "plain.subfiles");
        SetJob job(directory, true, 3);
        job.write_at(0, "first", 2);
        ASSERT_TRUE(complete_set(job.directory(), some_set, false,
                                 on_tier ? WriterOfSet::closes_on_tier : WriterOfSet::closes));
        job.die();
        auto const opened = expect(open_directory(directory));
        SetContents contents(opened.get(), some_set);
        ASSERT_TRUE(contents.refresh());
        EXPECT_EQ(contents.next_subfile(), on_tier ? 6U : 3U);
    }
}

}  // namespace
}  // namespace tapioca::subfile
