// The report on disk: every account of every thread and process is in it, and it is a JSON document at any time.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "report/report_file.hpp"

/// Whether the file system knows RENAME_NOREPLACE; NFS does not.
static bool has_no_replace = true;

/// In place of the C library's.
extern "C" int renameat2(int from_directory, char const* from, int to_directory, char const* to, unsigned flags)
{
    if (flags == 0 || has_no_replace)
        return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
    errno = EINVAL;
    return -1;
}

namespace tapioca::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ReportFile : public testing::Test {
protected:
    void SetUp() override { fs::remove(path_); }
    void TearDown() override { fs::remove(path_); }

    static std::string account(std::string const& who, int number)
    {
        return Json{{"path", who}, {"number", number}}.dump(2);
    }
    void add(std::string const& who, int first, int count) const
    {
        for (int i = first; i < first + count; ++i) {
            auto const status = add_account(path_, account(who, i));
            EXPECT_TRUE(status) << (status ? "" : status.error().text);
        }
    }
    /// Does it in another process, which ends.
    template <class Act>
    static pid_t elsewhere(Act act)
    {
        auto const child = ::fork();
        if (child != 0) return child;
        act();
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    static void expect_good(pid_t child)
    {
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    [[nodiscard]] Json read() const
    {
        std::ifstream in(path_);
        auto report = Json::parse(in, nullptr, false);
        EXPECT_FALSE(report.is_discarded());
        return report;
    }
    /// Which accounts there are, each once.
    [[nodiscard]] std::set<std::string> accounts() const
    {
        std::set<std::string> found;
        auto const report = read();
        for (auto const& file : report["files"])
            EXPECT_TRUE(found.insert(file["path"].get<std::string>() + file["number"].dump()).second);
        return found;
    }

    std::string path_ = "report.json";
};

TEST_F(ReportFile, LosesNoAccountOfSeveralThreads)
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([this, t] { add("thread", 100 * t, 100); });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(accounts().size(), 400U);
}

TEST_F(ReportFile, LosesNoAccountOfSeveralProcesses)
{
    std::vector<pid_t> children;
    add("parent", 0, 1);
    for (int p = 0; p < 4; ++p) children.push_back(elsewhere([this, p] { add("process", 100 * p, 100); }));
    add("parent", 1, 100);
    for (auto const child : children) expect_good(child);
    EXPECT_EQ(accounts().size(), 501U);
}

TEST_F(ReportFile, OfProcessesThatBeginAtTheSameTimeIsOne)
{
    for (int turn = 0; turn < 40; ++turn) {
        has_no_replace = turn % 2 == 0;
        fs::remove(path_);
        int start[2];
        int added[2];
        int finish[2];
        for (auto* const ends : {start, added, finish}) ASSERT_EQ(::pipe(ends), 0);
        std::vector<pid_t> children;
        for (int p = 0; p < 4; ++p)
            children.push_back(elsewhere([&] {
                ::close(start[1]);
                ::close(finish[1]);
                char c = 0;
                EXPECT_EQ(::read(start[0], &c, 1), 0);
                add("process", p, 1);
                EXPECT_EQ(::write(added[1], "x", 1), 1);
                EXPECT_EQ(::read(finish[0], &c, 1), 0);  // a report of processes that have ended would be replaced
            }));
        ::close(start[1]);
        char c = 0;
        for (int p = 0; p < 4; ++p) EXPECT_EQ(::read(added[0], &c, 1), 1);
        ::close(finish[1]);
        for (auto const fd : {start[0], added[0], added[1], finish[0]}) ::close(fd);
        for (auto const child : children) expect_good(child);
        EXPECT_EQ(accounts().size(), 4U) << (has_no_replace ? "" : "without RENAME_NOREPLACE");
    }
    has_no_replace = true;
}

TEST_F(ReportFile, StaysWhereItWasMeantWhenTheWorkingDirectoryChanges)
{
    auto const before = fs::current_path();
    auto const place = report_place("relative.json");
    EXPECT_EQ(place, before.string() + "/relative.json");
    fs::current_path("/");
    EXPECT_EQ(report_place("relative.json"), place);
    EXPECT_EQ(report_place("/a/b.json"), "/a/b.json");
    fs::current_path(before);
}

TEST_F(ReportFile, OfAProcessThatEndedIsReplaced)
{
    expect_good(elsewhere([this] { add("before", 0, 3); }));
    EXPECT_EQ(accounts().size(), 3U);
    add("now", 0, 2);
    EXPECT_EQ(accounts(), (std::set<std::string>{"now0", "now1"}));
}

TEST_F(ReportFile, IsBegunAgainWhenSomebodyRemovedIt)
{
    add("before", 0, 2);
    fs::remove(path_);
    add("after", 0, 2);
    EXPECT_EQ(accounts(), (std::set<std::string>{"after0", "after1"}));
}

TEST_F(ReportFile, IsNotWrittenThroughALinkThatTookItsPlace)
{
    std::ofstream("other") << "mine";
    add("before", 0, 1);
    fs::remove(path_);
    fs::create_symlink("other", path_);
    add("after", 0, 1);
    EXPECT_EQ(accounts().size(), 1U);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path_)));
    EXPECT_EQ(fs::file_size("other"), 4U);
    fs::remove("other");
}

TEST_F(ReportFile, ThatSomebodyElseChangedIsLeftAsItIs)
{
    add("before", 0, 1);
    std::ofstream(path_, std::ios::app) << "a remark";
    auto const size = fs::file_size(path_);
    EXPECT_FALSE(add_account(path_, account("after", 0)));
    EXPECT_EQ(fs::file_size(path_), size);
}

TEST_F(ReportFile, DoesNotTakeThePlaceOfAnotherFileOfTheUser)
{
    std::ofstream(path_) << "results of a year";
    auto const status = add_account(path_, account("first", 0));
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().text.find("is not a report, and is left as it is"), std::string::npos);
    EXPECT_EQ(fs::file_size(path_), 17U);
    fs::remove(path_);
}

TEST_F(ReportFile, DoesNotKeepADescriptorForEveryName)
{
    auto const descriptors = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
    auto const before = descriptors();
    for (int turn = 0; turn < 2; ++turn)
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(add_account("report" + std::to_string(i), account("many", turn)));
    EXPECT_LE(descriptors(), before + 32);
    for (int i = 0; i < 100; ++i) {
        path_ = "report" + std::to_string(i);
        EXPECT_EQ(accounts().size(), 2U);
        fs::remove(path_);
    }
}

}  // namespace
}  // namespace tapioca::report
