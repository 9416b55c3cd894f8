// What killed jobs leave behind, and which of it the next job removes: only what nobody needs.
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "attack/users.hpp"
#include "machine/tier/tier.hpp"
#include "stage/leftovers.hpp"
#include "stage/log_writer.hpp"
#include "stage/marker.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

class Leftovers : public testing::Test {
protected:
    void SetUp() override
    {
        auto const* const test = testing::UnitTest::GetInstance()->current_test_info();
        directory_ = fs::current_path().string() + "/" + test->name();
        fs::remove_all(directory_);
        fs::create_directory(directory_);
        fs::permissions(directory_, fs::perms::all | fs::perms::sticky_bit);
    }
    void TearDown() override { fs::remove_all(directory_); }

    [[nodiscard]] std::unique_ptr<machine::Tier> tier() const
    {
        // One more slash each time: a process looks only once into a directory.
        auto const place = directory_ + std::string(++looks_, '/');
        auto made = machine::make_tier({"ssd:" + place, "ssd", place, {}, {}, {}, {}, {}});
        EXPECT_TRUE(made);
        return std::move(*made);
    }
    [[nodiscard]] std::string memory_file(char const* nonce = "00112233445566ff") const
    {
        return directory_ + "/tapioca-4711-" + nonce;
    }
    static void make_old(std::string const& path, std::time_t seconds = 120)
    {
        timespec const times[2] = {{std::time(nullptr) - seconds, 0}, {std::time(nullptr) - seconds, 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
    }
    static void make_file(std::string const& path) { std::ofstream(path) << "something"; }
    [[nodiscard]] std::size_t entries() const
    {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_), {}));
    }
    std::string directory_;
    mutable std::size_t looks_ = 0;
};

TEST_F(Leftovers, TheMemoryFileOfAKilledCreatorIsRemovedByTheNextRun)
{
    auto const here = tier();
    auto const child = ::fork();
    if (child == 0) {
        auto const mapping = here->create(1 << 20);
        ::kill(::getpid(), mapping ? SIGKILL : SIGTERM);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ASSERT_EQ(entries(), 1U);
    auto const name = fs::directory_iterator(directory_)->path().string();
    (void)tier();
    EXPECT_TRUE(fs::exists(name)) << "it is young";
    make_old(name, 50);
    (void)tier();
    EXPECT_TRUE(fs::exists(name)) << "it is still young";
    make_old(name);
    (void)tier();
    EXPECT_FALSE(fs::exists(name));
}

TEST_F(Leftovers, TheMemoryFileOfALivingCreatorStays)
{
    auto mapping = tier()->create(1 << 20);
    ASSERT_TRUE(mapping);
    make_old(mapping->name());
    (void)tier();
    EXPECT_TRUE(fs::exists(mapping->name()));
    auto const name = mapping->name();
    mapping->unlink();
    EXPECT_FALSE(fs::exists(name));
}

TEST_F(Leftovers, AMemoryFileWithTwoNamesStays)
{
    make_file(memory_file());
    fs::create_hard_link(memory_file(), directory_ + "/other");
    make_old(memory_file());
    (void)tier();
    EXPECT_TRUE(fs::exists(memory_file()));
}

TEST_F(Leftovers, ALinkThatIsNamedLikeAMemoryFileStaysAndSoDoesWhatItLeadsTo)
{
    make_file(directory_ + "/victim");
    make_old(directory_ + "/victim");
    fs::create_symlink(directory_ + "/victim", memory_file());
    make_old(memory_file());
    (void)tier();
    EXPECT_TRUE(fs::is_symlink(memory_file()));
    EXPECT_TRUE(fs::exists(directory_ + "/victim"));
}

TEST_F(Leftovers, OtherThingsThatAreNamedLikeAMemoryFileStayAndNobodyWaits)
{
    ASSERT_EQ(::mkfifo(memory_file("0000000000000001").c_str(), 0600), 0);
    fs::create_directory(memory_file("0000000000000002"));
    make_old(memory_file("0000000000000001"));
    make_old(memory_file("0000000000000002"));
    (void)tier();
    EXPECT_EQ(entries(), 2U);
}

TEST_F(Leftovers, FilesWithOtherNamesStay)
{
    for (auto const* const name :
         {"tapioca-4711-00112233445566f", "tapioca-4711-00112233445566fff", "tapioca-4711-00112233445566FF",
          "tapioca--00112233445566ff", "tapioca-47x1-00112233445566ff", "tapioca-12345678901-00112233445566ff",
          "tapioca-00112233445566ff00112233445566ff", "tapioca-4711-00112233445566ff.dat"}) {
        make_file(directory_ + "/" + name);
        make_old(directory_ + "/" + name);
    }
    (void)tier();
    EXPECT_EQ(entries(), 8U);
}

TEST_F(Leftovers, TheMemoryFileOfAnotherUserStays)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    ASSERT_TRUE(as_nobody([&] {
        make_file(memory_file());
        make_old(memory_file());
        return true;
    }));
    (void)tier();  // as root, who could remove it
    EXPECT_TRUE(fs::exists(memory_file()));
}

/// A job's directory as it was before there was a marker.
class EmptyJobs : public Leftovers {
protected:
    stage::OpeningId const identity_ = {std::byte{5}};
    [[nodiscard]] std::string job() const { return directory_ + "/tapioca-" + stage::to_hex(identity_); }
    [[nodiscard]] std::string target() const { return directory_ + "/target"; }
    [[nodiscard]] core::Result<stage::LogWriter> make_log(std::string const& name = "rank0") const
    {
        EXPECT_TRUE(stage::make_directory(directory_, identity_));
        stage::Head head = {};
        head.identity = identity_;
        head.ranks = 1;
        head.epoch = 1;
        (void)::gethostname(head.host, sizeof head.host - 1);
        target().copy(head.target, sizeof head.target - 1);
        return stage::LogWriter::create({job(), name}, head);
    }
    /// Of a job that is dead, and old.
    void make_log_with_a_request(bool finished, std::string const& name = "rank0") const
    {
        {
            auto writer = make_log(name);
            ASSERT_TRUE(writer);
            std::vector<std::byte> const data(100, std::byte{1});
            std::vector<Extent> const extents = {{0, 100}};
            ASSERT_TRUE(writer->append(pattern::Variable::from_extents(0, extents), 0, data.data(), 1, 0));
            if (finished) writer->finish();
        }
        age();
    }
    void age() const
    {
        for (auto const& entry : fs::directory_iterator(job())) make_old(entry.path().string());
        make_old(job());
    }
    void look() const { stage::remove_empty_jobs(directory_ + std::string(++looks_ + 1, '/')); }
};

TEST_F(EmptyJobs, ADirectoryWithoutAnythingIsRemovedOnceItIsOld)
{
    ASSERT_TRUE(stage::make_directory(directory_, identity_));
    look();
    EXPECT_TRUE(fs::exists(job()));
    age();
    look();
    EXPECT_FALSE(fs::exists(job()));
}

TEST_F(EmptyJobs, LogsWithoutARequestAreRemovedOnceTheirJobIsDead)
{
    {
        auto const writer = make_log();
        ASSERT_TRUE(writer) << writer.error().text;
        age();
        look();
        EXPECT_TRUE(fs::exists(job() + "/rank0.meta")) << "the job lives";
    }
    age();
    std::ofstream(stage::marker_path(target())) << "of somebody's";
    look();
    EXPECT_TRUE(fs::exists(job() + "/rank0.meta")) << "a marker may mean it";
    fs::remove(stage::marker_path(target()));
    look();
    EXPECT_FALSE(fs::exists(job()));
}

TEST_F(EmptyJobs, ALogWithARequestStaysAlsoWithoutAMarker)
{
    make_log_with_a_request(false);
    look();
    EXPECT_TRUE(fs::exists(job() + "/rank0.data"));
}

TEST_F(EmptyJobs, ALogThatWasFlushedIsRemovedWhereItsJobWasKilledBeforeItDidSo)
{
    make_log_with_a_request(true);
    std::ofstream(stage::marker_path(target())) << "of somebody's";
    look();
    EXPECT_TRUE(fs::exists(job() + "/rank0.data")) << "a marker may mean it";
    fs::remove(stage::marker_path(target()));
    look();
    EXPECT_FALSE(fs::exists(job()));
}

TEST_F(EmptyJobs, OneLogThatWasNotFlushedKeepsItsWholeDirectory)
{
    make_log_with_a_request(true, "rank0");
    make_log_with_a_request(false, "rank1");
    look();
    EXPECT_TRUE(fs::exists(job() + "/rank0.data"));
    EXPECT_TRUE(fs::exists(job() + "/rank1.data"));
}

TEST_F(EmptyJobs, DataWhoseEntriesAreRemovedAlreadyIsRemoved)
{
    make_log_with_a_request(true);
    fs::remove(job() + "/rank0.meta");
    age();
    look();
    EXPECT_FALSE(fs::exists(job()));
}

TEST_F(EmptyJobs, LargeFilesThatAreNamedLikeDataButAreNoneStay)
{
    ASSERT_TRUE(stage::make_directory(directory_, identity_));
    std::ofstream(job() + "/rank0.data") << std::string(stage::head_bytes + 1, 'x');
    fs::permissions(job() + "/rank0.data", fs::perms::owner_read | fs::perms::owner_write);
    age();
    look();
    EXPECT_TRUE(fs::exists(job() + "/rank0.data"));
}

TEST_F(EmptyJobs, ADirectoryWithAFileThatIsNotKnownStays)
{
    ASSERT_TRUE(stage::make_directory(directory_, identity_));
    make_file(job() + "/notes");
    age();
    look();
    EXPECT_TRUE(fs::exists(job() + "/notes"));
}

TEST_F(EmptyJobs, ALinkToADirectoryOfOthersIsNotFollowed)
{
    fs::create_directory(directory_ + "/real");
    fs::create_directory_symlink(directory_ + "/real", job());
    make_old(job());
    make_old(directory_ + "/real");
    look();
    EXPECT_TRUE(fs::exists(directory_ + "/real"));
    EXPECT_TRUE(fs::is_symlink(job()));
}

}  // namespace
}  // namespace tapioca::test
