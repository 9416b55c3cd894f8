// Draining: a subfile is complete in one of two places at any time, an interrupted drain goes on where that is safe,
// and what nobody can be sure of is left as it is.
#include <sys/mount.h>
#include <sys/stat.h>

#include "subfile/directory_files.hpp"
#include "subfile/drain.hpp"
#include "subfile_jobs.hpp"

namespace tapioca::subfile::test {
namespace {

constexpr auto block = Drain::block_bytes;
constexpr SetId some_set = {std::byte{0x5E}, std::byte{0x7}};

std::string text_of(core::Status const& status)
{
    return status ? std::string() : status.error().text;
}

class DrainTest : public testing::Test {
protected:
    DrainTest()
    {
        fs::create_directory(directory_);
        EXPECT_EQ(text_of(make_tier_place(place_, some_set, {"ssd:/scratch", "/files/a"})), "");
    }
    /// A subfile with a stretch of data in every 40 MiB, and holes between them.
    Bytes write_subfile(std::size_t bytes, unsigned seed = 1) const
    {
        Bytes image(bytes);
        constexpr std::size_t distance = std::size_t{40} << 20;
        put(on_tier_, 0, {});
        EXPECT_EQ(::truncate(on_tier_.c_str(), static_cast<off_t>(bytes)), 0);
        for (std::size_t at = 1000; at < bytes; at += distance) {
            auto const data = some_bytes(std::min<std::size_t>(300'000, bytes - at), seed + at);
            std::copy(data.begin(), data.end(), image.begin() + static_cast<std::ptrdiff_t>(at));
            put(on_tier_, at, data);
        }
        return image;
    }
    [[nodiscard]] core::Result<std::unique_ptr<Drain>> open(Drain::Writer writer = Drain::Writer::ended) const
    {
        return Drain::open(subfile_, writer);
    }
    /// How much the next drain finds there.
    [[nodiscard]] std::int64_t there() const
    {
        auto const drain = open();
        EXPECT_TRUE(drain && *drain) << (drain ? "" : drain.error().text);
        return drain && *drain ? (*drain)->there() : -1;
    }
    /// Drains all; a failure's text, or how it went.
    [[nodiscard]] std::string drained(std::int64_t* copied = nullptr) const
    {
        std::int64_t sum = 0;
        auto const done = drain_subfile(subfile_, Drain::Writer::ended, [&](std::int64_t bytes) { sum += bytes; });
        if (copied) *copied = sum;
        return !done ? done.error().text : *done ? "drained" : "nothing";
    }
    /// A drain that copies the beginning, and is killed then.
    void begin(std::int64_t bytes) const
    {
        auto const drain = open();
        ASSERT_TRUE(drain && *drain);
        EXPECT_EQ(text_of((*drain)->copy((*drain)->there(), bytes)), "");
    }
    void expect_drained(Bytes const& image) const
    {
        ASSERT_TRUE(fs::exists(copy_));
        EXPECT_TRUE(content(copy_) == image);
        EXPECT_FALSE(fs::exists(place_)) << "the last subfile takes the directory on the tier with it";
        EXPECT_FALSE(fs::exists(unfinished_));
    }
    static bool has(std::string const& text, char const* words) { return text.find(words) != std::string::npos; }

    Scratch const scratch_;
    std::string const directory_ = scratch_.path("a.subfiles");
    std::string const place_ = tier_place(scratch_.path(""), some_set);
    std::string const on_tier_ = place_ + "/subfile.3";
    std::string const copy_ = directory_ + "/subfile.3";
    std::string const unfinished_ = directory_ + "/draining.3";
    Drain::Subfile const subfile_ = {directory_, place_, some_set, 3};
};

TEST_F(DrainTest, BringsTheSubfileIntoTheDirectory)
{
    auto const image = write_subfile(3 * block + 12345);
    std::int64_t copied = 0;
    EXPECT_EQ(drained(&copied), "drained");
    EXPECT_EQ(copied, 3 * block + 12345);
    expect_drained(image);
    EXPECT_EQ(drained(), "nothing");
}

TEST_F(DrainTest, LeavesWhatElseIsOnTheTier)
{
    auto const image = write_subfile(1000);
    put(place_ + "/subfile.4", 0, some_bytes(10, 1));
    EXPECT_EQ(drained(), "drained");
    EXPECT_TRUE(content(copy_) == image);
    auto const left = find_tier_place(place_, some_set);
    ASSERT_TRUE(left && *left);
    EXPECT_EQ((*left)->subfiles, std::vector<std::uint32_t>{4});
}

TEST_F(DrainTest, OfAnEmptySubfile)
{
    put(on_tier_, 0, {});
    EXPECT_EQ(drained(), "drained");
    expect_drained({});
}

TEST_F(DrainTest, LeavesHolesAsTheyAre)
{
    auto const image = write_subfile(std::size_t{200} << 20);
    ASSERT_EQ(::truncate(on_tier_.c_str(), static_cast<off_t>(image.size()) + block), 0);
    EXPECT_EQ(drained(), "drained");
    EXPECT_EQ(fs::file_size(copy_), image.size() + static_cast<std::size_t>(block)) << "with the hole at its end";
    struct stat file = {};
    EXPECT_EQ(::stat(copy_.c_str(), &file), 0);
    EXPECT_LT(file.st_blocks * 512, 20'000'000);
}

TEST_F(DrainTest, GoesOnWhereItWas)
{
    auto const image = write_subfile(std::size_t{700} << 20);
    begin(block);
    EXPECT_EQ(there(), 0) << "little is not made durable";
    begin(Drain::synced_bytes + 3 * block);
    EXPECT_EQ(there(), Drain::synced_bytes);
    begin(2 * Drain::synced_bytes);
    EXPECT_EQ(there(), 2 * Drain::synced_bytes);
    std::int64_t copied = 0;
    EXPECT_EQ(drained(&copied), "drained");
    EXPECT_EQ(copied, std::int64_t{700} << 20) << "what was there counts";
    expect_drained(image);
}

TEST_F(DrainTest, BeginsAgainIfTheSubfileWasChanged)
{
    auto image = write_subfile(std::size_t{300} << 20);
    begin(Drain::synced_bytes);
    auto const other = some_bytes(100, 9);
    put(on_tier_, 5000, other);
    std::copy(other.begin(), other.end(), image.begin() + 5000);
    EXPECT_EQ(there(), 0);
    EXPECT_EQ(fs::file_size(unfinished_), 0U);
    EXPECT_EQ(drained(), "drained");
    expect_drained(image);
}

TEST_F(DrainTest, BeginsAgainIfTheCopyIsAnotherOrItsRecordIsDamaged)
{
    auto const image = write_subfile(std::size_t{300} << 20);
    begin(Drain::synced_bytes);
    fs::rename(unfinished_, scratch_.path("old"));
    EXPECT_EQ(there(), 0);
    begin(Drain::synced_bytes);
    EXPECT_EQ(there(), Drain::synced_bytes);
    ASSERT_EQ(::truncate(unfinished_.c_str(), Drain::synced_bytes - 1), 0);
    EXPECT_EQ(there(), 0);
    begin(Drain::synced_bytes);
    put(place_ + "/drained.3", 20, some_bytes(1, 7));
    EXPECT_EQ(there(), 0);
    EXPECT_EQ(drained(), "drained");
    expect_drained(image);
}

TEST_F(DrainTest, KeepsWhatACrashHasTakenFromTheTier)
{
    auto const image = write_subfile(std::size_t{300} << 20);
    begin(Drain::synced_bytes);
    struct stat before = {};
    ASSERT_EQ(::stat(on_tier_.c_str(), &before), 0);
    ASSERT_EQ(::truncate(on_tier_.c_str(), 500), 0);
    timespec const times[2] = {before.st_mtim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, on_tier_.c_str(), times, 0), 0);
    EXPECT_EQ(drained(), "drained");
    expect_drained(Bytes(image.begin(), image.begin() + Drain::synced_bytes));
}

TEST_F(DrainTest, ExcludesOthers)
{
    auto const image = write_subfile(1000);
    {
        auto const first = open();
        ASSERT_TRUE(first && *first);
        auto const second = open();
        EXPECT_TRUE(second && !*second);
    }
    EXPECT_EQ(drained(), "drained");
    expect_drained(image);
}

TEST_F(DrainTest, ASubfileThatIsThereAlreadyIsCompared)
{
    auto const image = write_subfile(2 * block + 5);
    put(copy_, 0, image);
    EXPECT_EQ(drained(), "nothing");
    expect_drained(image);
}

/// Its writer may have failed to sync the directory, or to remove the subfile.
TEST_F(DrainTest, TheWriterGoesOnAfterAFailedLastStep)
{
    auto const image = write_subfile(2 * block + 5);
    put(copy_, 0, image);
    auto const drain = open(Drain::Writer::writes);
    EXPECT_TRUE(drain && !*drain) << (drain ? "there is something to drain" : drain.error().text);
    expect_drained(image);
}

TEST_F(DrainTest, OfTwoThatDifferBothStay)
{
    auto const image = write_subfile(2 * block + 5);
    auto other = image;
    other.back() ^= std::byte{1};
    put(copy_, 0, other);
    for (auto const size : {image.size(), image.size() - 1}) {
        ASSERT_EQ(::truncate(copy_.c_str(), static_cast<off_t>(size)), 0);
        auto const said = drained();
        EXPECT_TRUE(has(said, copy_.c_str()) && has(said, on_tier_.c_str()) && has(said, "differ")) << said;
        EXPECT_TRUE(content(on_tier_) == image);
        EXPECT_EQ(fs::file_size(copy_), size);
    }
}

TEST_F(DrainTest, NoticesWhenSomebodyWritesMeanwhile)
{
    auto image = write_subfile(2 * block);
    {
        auto const drain = open();
        ASSERT_TRUE(drain && *drain);
        EXPECT_EQ(text_of((*drain)->copy(0, block)), "");
        put(on_tier_, 7, some_bytes(5, 3));
        EXPECT_TRUE(has(text_of((*drain)->finish(2 * block)), "was changed while"));
    }
    EXPECT_FALSE(fs::exists(copy_));
    image = content(on_tier_);
    EXPECT_EQ(drained(), "drained");
    expect_drained(image);
}

TEST_F(DrainTest, OfASubfileThatGrows)
{
    put(on_tier_, 0, {});
    auto const drain = open(Drain::Writer::writes);
    ASSERT_TRUE(drain && *drain);
    Bytes image(static_cast<std::size_t>(5 * block + 777));
    std::mt19937_64 random(4);
    auto const write = [&](std::int64_t at, std::int64_t bytes) {
        auto const data = some_bytes(static_cast<std::size_t>(bytes), random());
        std::copy(data.begin(), data.end(), image.begin() + at);
        put(on_tier_, static_cast<std::size_t>(at), data);
        EXPECT_EQ(text_of((*drain)->copy(at, at + bytes)), "");
    };
    write(2 * block - 100, 300);
    EXPECT_EQ(fs::file_size(unfinished_), 0U) << "no block is complete";
    write(0, block + 100);
    EXPECT_EQ(fs::file_size(unfinished_), static_cast<std::size_t>(block));
    write(block + 100, block - 200);
    EXPECT_EQ(fs::file_size(unfinished_), static_cast<std::size_t>(2 * block));
    write(10, 500);               // once more
    write(block - 5, 2 * block);  // the same over several blocks
    write(4 * block, 100);
    put(on_tier_, static_cast<std::size_t>(4 * block + 200), some_bytes(50, 2));  // nobody said so
    auto const more = some_bytes(50, 2);
    std::copy(more.begin(), more.end(), image.begin() + 4 * block + 200);
    write(5 * block + 700, 77);
    EXPECT_EQ(text_of((*drain)->finish(5 * block + 777)), "");
    expect_drained(image);
}

TEST_F(DrainTest, WhatWasCopiedOfAGrowingSubfileDoesNotCountLater)
{
    auto const image = write_subfile(std::size_t{300} << 20);
    {
        auto const drain = open(Drain::Writer::writes);
        ASSERT_TRUE(drain && *drain);
        EXPECT_EQ(text_of((*drain)->copy(0, Drain::synced_bytes)), "");
    }
    EXPECT_EQ(there(), 0) << "it may have been written again since";
    EXPECT_EQ(drained(), "drained");
    expect_drained(image);
}

TEST_F(DrainTest, TheSizeIsThatOfTheWriterOrOfTheFile)
{
    auto const image = write_subfile(10'000);
    {
        auto const drain = open(Drain::Writer::writes);
        ASSERT_TRUE(drain && *drain);
        EXPECT_EQ(text_of((*drain)->finish(6000)), "");
    }
    expect_drained(Bytes(image.begin(), image.begin() + 6000));
    fs::remove(copy_);
    ASSERT_EQ(text_of(make_tier_place(place_, some_set, {"ssd:/scratch", "/files/a"})), "");
    write_subfile(10'000);
    {
        auto const drain = open(Drain::Writer::writes);
        ASSERT_TRUE(drain && *drain);
        EXPECT_EQ(text_of((*drain)->finish(60'000)), "");
    }
    expect_drained(image);
}

TEST_F(DrainTest, GoesOnWhenAFullFileSystemHasRoom)
{
    if (::mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=20m") != 0) GTEST_SKIP() << "cannot mount";
    auto const image = some_bytes(static_cast<std::size_t>(4 * block), 5);
    put(on_tier_, 0, image);
    auto const said = drained();
    EXPECT_TRUE(has(said, "No space") && has(said, unfinished_.c_str())) << said;
    EXPECT_TRUE(content(on_tier_) == image);
    EXPECT_EQ(::mount("tmpfs", directory_.c_str(), "tmpfs", MS_REMOUNT, "size=60m"), 0);
    EXPECT_EQ(drained(), "drained");
    expect_drained(image);
    ::umount2(directory_.c_str(), MNT_DETACH);
}

TEST_F(DrainTest, TakesAndLeavesNothingOfOthers)
{
    write_subfile(1000);
    put(scratch_.path("secret"), 0, some_bytes(10, 1));
    fs::create_hard_link(scratch_.path("secret"), unfinished_);
    EXPECT_TRUE(has(drained(), "is in the way"));
    fs::remove(unfinished_);
    fs::create_symlink(scratch_.path("secret"), unfinished_);
    EXPECT_NE(drained(), "drained");
    fs::remove(unfinished_);
    fs::remove(on_tier_);
    fs::create_hard_link(scratch_.path("secret"), on_tier_);
    EXPECT_TRUE(has(drained(), "has 2 names"));
    EXPECT_EQ(fs::file_size(scratch_.path("secret")), 10U);
    EXPECT_FALSE(fs::exists(copy_));
}

TEST_F(DrainTest, AnUnfinishedCopyBelongsToTheSet)
{
    EXPECT_TRUE(belongs_to_set("draining.3"));
    EXPECT_FALSE(belongs_to_set("draining.x"));
}

TEST(ByteRanges, AreASetOfBytes)
{
    std::mt19937_64 random(3);
    for (int turn = 0; turn < 200; ++turn) {
        ByteRanges ranges;
        std::vector<bool> model(64, false);
        for (int step = 0; step < 20; ++step) {
            auto const begin = static_cast<std::int64_t>(random() % 64);
            auto const end = std::min<std::int64_t>(64, begin + static_cast<std::int64_t>(random() % 12));
            bool const adds = random() % 3 != 0;
            if (adds) ranges.add(begin, end);
            if (!adds) ranges.remove(begin, end);
            for (auto at = begin; at < end; ++at) model[static_cast<std::size_t>(at)] = adds;
        }
        std::vector<bool> found(64, false);
        std::int64_t last = -1;
        for (auto range = ranges.next(0); range.begin < 64; range = ranges.next(range.end)) {
            EXPECT_GT(range.begin, last) << "they do not touch";
            last = range.end;
            for (auto at = range.begin; at < range.end; ++at) found[static_cast<std::size_t>(at)] = true;
        }
        EXPECT_EQ(found, model);
    }
}

}  // namespace
}  // namespace tapioca::subfile::test
