// Joins: the plain file is what the set stands for, whoever makes it and however often it was interrupted, and the
// subfiles stay until it is there.
#include <sys/stat.h>

#include "subfile/coverage.hpp"
#include "subfile/join.hpp"
#include "subfile_jobs.hpp"

namespace tapioca::subfile::test {
namespace {

constexpr std::uint64_t boot = 7;  // of the machine

core::Status copy_all(Join& join)
{
    core::Status status;
    for (std::uint64_t chunk = 0; status && chunk < join.chunks(); ++chunk)
        if (!join.is_done(chunk)) status = join.copy(chunk);
    return status ? join.sync() : status;
}

/// As `tapioca subfile join` does it with one process.
core::Status joined(std::string const& path, std::string const& output = "", bool keep = false)
{
    auto join = Join::open(path, output);
    if (!join) return tl::unexpected(join.error());
    if (auto status = (*join)->prepare(boot); !status) return status;
    if (auto status = copy_all(**join); !status) return status;
    return (*join)->finish(keep);
}

void expect_failure(core::Status const& status, std::string const& words)
{
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().text.find(words), std::string::npos) << status.error().text;
}

TEST(Join, MakesThePlainFileAndRemovesTheSubfiles)
{
    Scratch const scratch;
    Set set(scratch, 3);
    write_in_turn(set, 3, 300'000, 17);
    set.write_rest(6'000'000, some_bytes(100'000, 5));
    set.complete();
    EXPECT_TRUE(joined(set.path()));
    EXPECT_TRUE(content(set.path()) == set.image());
    EXPECT_EQ(scratch.names(), Names{"a"});
    EXPECT_EQ(fs::status(set.path()).permissions(), fs::perms(0640));
}

TEST(Join, IsRightForRandomSets)
{
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Scratch const scratch;
        std::mt19937_64 random(seed);
        Set set(scratch, 3);
        write_at_random(set, 3, random);
        if (seed % 3 == 0) set.write_rest(set.image().size() + seed * 3000, some_bytes(5000, seed));
        set.complete();
        if (seed % 2 == 0) {
            set.open_again(2);
            write_at_random(set, 2, random);
            set.complete();
        }
        ASSERT_TRUE(set.read() == set.image()) << "seed " << seed;
        EXPECT_TRUE(joined(set.path(), scratch.path("plain")));
        ASSERT_TRUE(content(scratch.path("plain")) == set.image()) << "seed " << seed;
        EXPECT_EQ(scratch.names(), (Names{"a", "a.subfiles", "plain"}));
    }
}

TEST(Join, LeavesHolesAsTheyAre)
{
    Scratch const scratch;
    Set set(scratch, 1);
    set.advance();
    set.write(0, {{0, 1'000'000}, {50'000'000, 1'000'000}}, 1);
    for (std::size_t at = 12'000'000; at < 100'000'000; at += 20'000'000) set.write_rest(at, some_bytes(300'000, at));
    set.complete();
    EXPECT_TRUE(joined(set.path()));
    EXPECT_TRUE(content(set.path()) == set.image());
    struct stat file = {};
    EXPECT_EQ(::stat(set.path().c_str(), &file), 0);
    EXPECT_LT(file.st_blocks * 512, 10'000'000);
}

TEST(Join, OfAnEmptyFile)
{
    Scratch const scratch;
    Set set(scratch, 2);
    set.complete();
    EXPECT_TRUE(joined(set.path()));
    EXPECT_EQ(fs::file_size(set.path()), 0U);
    EXPECT_EQ(scratch.names(), Names{"a"});
}

/// A set of several of the parts in which a join counts, most of them holes.
void write_parts(Set& set)
{
    set.advance();
    for (std::int64_t part = 0; part < 3; ++part)
        set.write(static_cast<std::size_t>(part % 2), {{part * Join::chunk_bytes + 1000, 200'000}},
                  static_cast<std::uint64_t>(part) + 1);
    set.complete();
}

/// Prepares a join and copies one of its parts; then the process ends.
void begin(Set const& set, std::uint64_t part, std::uint64_t kernels = boot)
{
    auto join = Join::open(set.path(), "");
    ASSERT_TRUE(join);
    ASSERT_TRUE((*join)->prepare(kernels));
    EXPECT_EQ((*join)->chunks(), 3U);
    EXPECT_TRUE((*join)->copy(part));
}

/// How many parts the next join finds there.
std::uint64_t found_by_next(Set const& set, std::uint64_t kernels = boot)
{
    auto join = Join::open(set.path(), "");
    EXPECT_TRUE(join && (*join)->prepare(kernels));
    return join ? (*join)->done() : 99;
}

TEST(Join, GoesOnWhereItWas)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    begin(set, 1);
    EXPECT_EQ(found_by_next(set), 1U);
    begin(set, 0);
    EXPECT_EQ(found_by_next(set), 2U);
    EXPECT_TRUE(set.read() == set.image());
    EXPECT_TRUE(joined(set.path()));
    EXPECT_TRUE(content(set.path()) == set.image());
    EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(Join, BeginsAgainIfWhatItCopiedMayBeLostOrOld)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    begin(set, 1);
    EXPECT_EQ(found_by_next(set, boot + 1), 0U);  // the machine was started again
    begin(set, 1, 0);
    EXPECT_EQ(found_by_next(set, 0), 0U);  // nobody knows
    begin(set, 1);
    auto const other = some_bytes(10, 9);
    put(set.part("subfile.1"), 500, other);  // the set is written in place
    EXPECT_EQ(found_by_next(set), 0U);
    begin(set, 2);
    fs::copy_file(scratch.path("a.joining"), scratch.path("b"));
    fs::rename(scratch.path("b"), scratch.path("a.joining"));  // another file
    EXPECT_EQ(found_by_next(set), 0U);
    begin(set, 2);
    put(scratch.path("a.joining.done"), 20, other);
    EXPECT_EQ(found_by_next(set), 0U);
    auto const now = set.read();
    EXPECT_TRUE(joined(set.path()));
    EXPECT_TRUE(content(set.path()) == now);
}

TEST(Join, OfSeveralProcesses)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    std::vector<std::unique_ptr<Join>> joins;
    for (int i = 0; i < 3; ++i) joins.push_back(std::move(*Join::open(set.path(), "")));
    ASSERT_TRUE(joins[0]->prepare(boot));
    ASSERT_TRUE(joins[1]->attach());
    ASSERT_TRUE(joins[2]->attach());
    for (std::uint64_t chunk = 0; chunk < 3; ++chunk) EXPECT_TRUE(joins[2 - chunk]->copy(chunk));
    for (auto const& join : joins) EXPECT_TRUE(join->sync());
    EXPECT_TRUE(joins[0]->finish(false));
    EXPECT_TRUE(content(set.path()) == set.image());
    EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(Join, NoticesWhatIsWrittenWhileItBegins)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    auto join = Join::open(set.path(), "");
    ASSERT_TRUE(join);
    put(set.directory() + "/rest", 3 * Join::chunk_bytes, some_bytes(100, 7));
    expect_failure((*join)->prepare(boot), "has changed these subfiles just now");
}

TEST(Join, ExcludesOthers)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    auto first = Join::open(set.path(), "");
    ASSERT_TRUE(first && (*first)->prepare(boot));
    auto second = Join::open(set.path(), scratch.path("b"));
    expect_failure(second ? core::Status() : tl::unexpected(second.error()), "a job is writing");
    first->reset();
    expect_failure(joined(set.path() + "x"), "No such file");
    set.open_again(2);
    expect_failure(joined(set.path()), "a job is writing");
    set.leave();
    EXPECT_TRUE(joined(set.path()));  // it had written nothing
    EXPECT_TRUE(content(set.path()) == set.image());
}

TEST(Join, IsGivenUpIfTheSetIsChangedMeanwhile)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    auto join = Join::open(set.path(), "");
    ASSERT_TRUE(join && (*join)->prepare(boot) && copy_all(**join));
    set.write_rest(Join::chunk_bytes / 2, some_bytes(10, 3));
    expect_failure((*join)->finish(false), "changed while they were joined");
    join->reset();
    EXPECT_TRUE(set.read() == set.image());
    EXPECT_TRUE(joined(set.path()));
    EXPECT_TRUE(content(set.path()) == set.image());
}

TEST(Join, RemovesNothingIfItsFileCannotGetTheName)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    auto join = Join::open(set.path(), "");
    ASSERT_TRUE(join && (*join)->prepare(boot) && copy_all(**join));
    fs::rename(set.path(), scratch.path("stub"));
    put(set.path(), 0, some_bytes(10, 1));
    expect_failure((*join)->finish(false), "was replaced by another file");
    EXPECT_TRUE(content(set.path()) == some_bytes(10, 1));
    EXPECT_TRUE(set.read() == set.image());
}

TEST(Join, KeepsTheSubfilesIfAsked)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    EXPECT_TRUE(joined(set.path(), "", true));
    EXPECT_EQ(scratch.names(), (Names{"a", "a.subfiles"}));
    EXPECT_TRUE(content(set.path()) == set.image());
    EXPECT_EQ(Join::finish_removal(set.path()), false);
    EXPECT_EQ(scratch.names(), (Names{"a", "a.subfiles"}));
}

TEST(Join, RemovesWhatAnInterruptedRemovalHasLeft)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    fs::copy(set.directory(), scratch.path("copy"), fs::copy_options::recursive);
    auto join = Join::open(set.path(), "");
    ASSERT_TRUE(join && (*join)->prepare(boot) && copy_all(**join));
    fs::copy_file(scratch.path("a.joining.done"), scratch.path("marks"));
    ASSERT_TRUE((*join)->finish(false));
    join->reset();
    // As if it had been killed before it removed them.
    fs::rename(scratch.path("copy"), set.directory());
    fs::rename(scratch.path("marks"), scratch.path("a.joining.done"));
    fs::permissions(scratch.path("a.joining.done"), fs::perms(0600));
    fs::rename(set.path(), scratch.path("b"));
    fs::copy_file(scratch.path("b"), set.path());  // another file, which only looks the same
    EXPECT_EQ(Join::finish_removal(set.path()), false);
    EXPECT_TRUE(fs::exists(set.part("subfile.0")));
    fs::rename(scratch.path("b"), set.path());
    EXPECT_EQ(Join::finish_removal(set.path()), true);
    EXPECT_EQ(scratch.names(), Names{"a"});
    EXPECT_TRUE(content(set.path()) == set.image());
}

TEST(Join, SaysWhatIsMissingBeforeItCopies)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    fs::rename(set.part("subfile.1"), scratch.path("away"));
    expect_failure(joined(set.path()), "subfile.1: No such file or directory: `tapioca subfile verify");
    fs::create_symlink(scratch.path("away"), set.part("subfile.1"));
    expect_failure(joined(set.path()), "subfile.1 is not a plain file");
    fs::remove(set.part("subfile.1"));
    fs::copy_file(scratch.path("away"), set.part("subfile.1"));
    fs::resize_file(set.part("subfile.1"), 199'999);
    expect_failure(joined(set.path()), "subfile.1 has 199999 bytes, and the index says 200000");
    EXPECT_EQ(scratch.names(), (Names{"a", "a.subfiles", "away"}));
    fs::remove_all(set.directory());
    expect_failure(joined(set.path()), "the directory of its subfiles");
}

TEST(Join, WritesOverNothingThatItMustNot)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_parts(set);
    Set other(scratch, 1, "b");
    write_in_turn(other, 1, 1000, 3);
    other.complete();
    expect_failure(joined(set.path(), other.path()), "is a set of subfiles, which would be lost");
    expect_failure(joined(set.path(), set.path()), "is a set of subfiles, which would be lost");
    expect_failure(joined(set.path(), set.part("subfile.0")), "would be among the subfiles");
    expect_failure(joined(set.path(), set.directory()), "is not a plain file");
    fs::create_symlink(set.path(), scratch.path("c.joining"));
    expect_failure(joined(set.path(), scratch.path("c")), "c.joining");
    fs::remove(scratch.path("c.joining"));
    fs::create_hard_link(other.path(), scratch.path("c.joining"));
    expect_failure(joined(set.path(), scratch.path("c")), "is in the way");
    EXPECT_TRUE(set.read() == set.image());
    EXPECT_TRUE(other.read() == other.image());
}

TEST(Join, RefusesASetThatIsNotComplete)
{
    Scratch const scratch;
    Set set(scratch, 2);
    write_in_turn(set, 2, 1000, 5);
    expect_failure(joined(set.path()), "a job is writing these subfiles");
    set.leave();
    expect_failure(joined(set.path()), "`tapioca subfile recover");
}

TEST(Coverage, SaysWhereEveryByteIs)
{
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Scratch const scratch;
        std::mt19937_64 random(seed);
        Set set(scratch, 3);
        write_at_random(set, 3, random);
        set.complete();
        auto const opened = open_directory(set.directory());
        SetContents contents(opened->get(), set.stub().identity);
        ASSERT_TRUE(contents.refresh());
        std::vector<Bytes> subfiles;
        for (std::uint32_t i = 0; i < 3; ++i) subfiles.push_back(content(set.part(subfile_name(i))));
        Bytes found(set.image().size());
        std::int64_t last = 0;
        std::uint64_t live = 0;
        each_stretch(contents.map(), [&](FilePart const& part) {
            EXPECT_GE(part.offset, last);
            last = part.offset + part.length;
            live += static_cast<std::uint64_t>(part.length);
            std::copy_n(subfiles[part.subfile].begin() + part.at, part.length, found.begin() + part.offset);
        });
        ASSERT_TRUE(found == set.image()) << "seed " << seed;
        EXPECT_EQ(dead_bytes(contents.map(), 1'000'000), contents.map().data_bytes() - live);
        EXPECT_EQ(dead_bytes(contents.map(), 1), std::nullopt);
    }
}

}  // namespace
}  // namespace tapioca::subfile::test
