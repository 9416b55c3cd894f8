// Splits, and recoveries of sets whose job has ended: there is always the file or a set that stands for it.
#include <sys/stat.h>

#include "subfile/recover.hpp"
#include "subfile/split.hpp"
#include "subfile_jobs.hpp"

namespace tapioca::subfile::test {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

core::Result<SplitFacts> split_file(std::string const& path, std::uint32_t subfiles)
{
    return split(path, subfiles, [](std::uint64_t) {});
}

void expect_refused(core::Result<SplitFacts> const& result, std::string const& words)
{
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().text.find(words), std::string::npos) << result.error().text;
}

/// What the set at `path` stands for.
Bytes read_set(std::string const& path)
{
    auto const stub = find_stub(path);
    EXPECT_TRUE(stub && *stub);
    if (!stub || !*stub) return {};
    SetTarget target(nullptr, beside(path, (*stub)->directory), (*stub)->identity, target::OpenMode::read);
    auto const size = target.size();
    EXPECT_TRUE(size);
    Bytes bytes(size.value_or(0));
    EXPECT_TRUE(target.read(0, std::span<std::byte>(bytes)));
    return bytes;
}

TEST(Split, MakesASetThatStandsForTheFile)
{
    Scratch const scratch;
    auto const path = scratch.path("a");
    auto const bytes = some_bytes(5 * MiB + 1000, 1);
    put(path, 0, bytes);
    fs::permissions(path, fs::perms(0644));
    auto const facts = split_file(path, 4);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->subfiles, 4U);
    EXPECT_EQ(facts->bytes, bytes.size());
    EXPECT_TRUE(read_set(path) == bytes);
    EXPECT_EQ(scratch.names(), (Names{"a", "a.subfiles"}));
    std::size_t sum = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
        auto const size = fs::file_size(scratch.path("a.subfiles/" + subfile_name(i)));
        EXPECT_GE(size, MiB);
        sum += size;
    }
    EXPECT_EQ(sum, bytes.size());
    for (auto const* const name : {"a", "a.subfiles/index", "a.subfiles/subfile.0"})
        EXPECT_EQ(fs::status(scratch.path(name)).permissions(), fs::perms(0644)) << name;
    EXPECT_EQ(fs::status(scratch.path("a.subfiles")).permissions(), fs::perms(0755));
}

TEST(Split, MakesFewerSubfilesOfASmallFile)
{
    Scratch const scratch;
    auto const bytes = some_bytes(2 * MiB + 1, 2);
    put(scratch.path("a"), 0, bytes);
    EXPECT_EQ(split_file(scratch.path("a"), 100)->subfiles, 3U);
    EXPECT_TRUE(read_set(scratch.path("a")) == bytes);
    put(scratch.path("b"), 0, some_bytes(1, 3));
    EXPECT_EQ(split_file(scratch.path("b"), 2)->subfiles, 1U);
    EXPECT_TRUE(read_set(scratch.path("b")) == some_bytes(1, 3));
}

TEST(Split, LeavesHolesAsTheyAre)
{
    Scratch const scratch;
    put(scratch.path("a"), 100 * MiB, some_bytes(10, 2));
    ASSERT_TRUE(split_file(scratch.path("a"), 2));
    struct stat file = {};
    EXPECT_EQ(::stat(scratch.path("a.subfiles/subfile.0").c_str(), &file), 0);
    EXPECT_LT(file.st_blocks * 512, static_cast<std::int64_t>(MiB));
}

TEST(Split, RefusesWhatIsNoPlainFile)
{
    Scratch const scratch;
    expect_refused(split_file(scratch.path("a"), 2), "No such file");
    expect_refused(split_file(scratch.path("."), 2), "is not a plain file");
    put(scratch.path("a"), 0, {});
    expect_refused(split_file(scratch.path("a"), 2), "is empty");
    put(scratch.path("a"), 0, some_bytes(100, 1));
    expect_refused(split_file(scratch.path("a"), 0), "from 1 to");
    ASSERT_TRUE(split_file(scratch.path("a"), 2));
    expect_refused(split_file(scratch.path("a"), 2), "is a set of subfiles already");
}

TEST(Split, TouchesNoDirectoryOfAnotherFile)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_in_turn(set, 2, 1000, 5);
    set.complete();
    fs::rename(set.path(), scratch.path("stub"));
    put(set.path(), 0, some_bytes(100, 1));
    expect_refused(split_file(set.path(), 2), "may hold the data of another file");
    EXPECT_EQ(scratch.names(), (Names{"a", "a.subfiles", "stub"}));
    // Not even if a split was interrupted before it made its own.
    {
        core::Descriptor const note(::open(splitting_name(set.path()).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        EXPECT_TRUE(write_stub(note.get(), {stage::new_identity(), directory_name(set.path())}));
    }
    expect_refused(split_file(set.path(), 2), "belongs to another file");
    fs::remove(splitting_name(set.path()));
    fs::remove(set.path());
    fs::rename(scratch.path("stub"), set.path());
    EXPECT_TRUE(set.read() == set.image());
    fs::create_directory_symlink(scratch.path("."), scratch.path("b.subfiles"));
    put(scratch.path("b"), 0, some_bytes(100, 1));
    expect_refused(split_file(scratch.path("b"), 2), "exists already");
}

TEST(Split, ThatFailsLeavesTheFileAndNothingElse)
{
    Scratch const scratch;
    auto const path = scratch.path("a");
    auto const bytes = some_bytes(3 * MiB, 1);
    put(path, 0, bytes);
    auto const result = split(path, 3, [&](std::uint64_t) { put(path, 3 * MiB, bytes); });  // somebody writes
    expect_refused(result, "was changed while it was split");
    EXPECT_EQ(scratch.names(), Names{"a"});
    EXPECT_EQ(content(path).size(), 6 * MiB);
    auto const other = split(path, 3, [&](std::uint64_t) { fs::remove(scratch.path("a.subfiles/journal.0")); });
    EXPECT_TRUE(other);  // the journals are only as good as the disk
}

TEST(Recovery, CompletesASetWithItsJournals)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_in_turn(set, 2, 1000, 6);
    auto const live = recover_set(set.path(), set.stub());
    ASSERT_FALSE(live);
    EXPECT_NE(live.error().text.find("a job is writing"), std::string::npos) << live.error().text;
    set.leave();
    auto const found = recover_set(set.path(), set.stub());
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->chunks, 2U);
    EXPECT_EQ((*found)->data_bytes, 6000U);
    EXPECT_EQ((*found)->journals, 2U);
    EXPECT_EQ((*found)->size, 6000);
    EXPECT_TRUE(set.read() == set.image());
    EXPECT_TRUE(check_usable(set.path(), set.stub()));
    EXPECT_EQ(*recover_set(set.path(), set.stub()), std::nullopt);
}

TEST(Recovery, AddsToWhatTheIndexHas)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_in_turn(set, 2, 1000, 6);
    set.complete();
    set.open_again(3);
    write_in_turn(set, 3, 500, 9);
    set.leave();
    auto const found = recover_set(set.path(), set.stub());
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->chunks, 3U);
    EXPECT_EQ((*found)->data_bytes, 4500U);
    EXPECT_TRUE(set.read() == set.image());
}

TEST(Recovery, OfAJobThatHadWrittenNothing)
{
    Scratch const scratch;
    Set set(scratch, 2);
    set.leave();
    auto const found = recover_set(set.path(), set.stub());
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->journals, 0U);
    EXPECT_EQ((*found)->size, 0);
    EXPECT_TRUE(check_usable(set.path(), set.stub()));
}

TEST(Recovery, SaysIfNothingSpeaksOfTheSubfiles)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_in_turn(set, 2, 1000, 6);
    set.leave();
    fs::remove(set.part(writer_name));
    auto const found = recover_set(set.path(), set.stub());
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().text.find("neither an index nor a note"), std::string::npos) << found.error().text;
}

}  // namespace
}  // namespace tapioca::subfile::test
