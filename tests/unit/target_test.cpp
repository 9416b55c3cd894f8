// The file target and the I/O thread, each by itself.
#include "target/target.hpp"

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/cores.hpp"
#include "machine/storage.hpp"
#include "target/worker.hpp"

static std::atomic<int> synced = 0;

/// In place of the C library's.
extern "C" int fdatasync(int fd)
{
    ++synced;
    return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace tapioca::target {
namespace {

TEST(Changes, AreNotedByTheClockOfTheFile)
{
    constexpr std::int64_t hour_ns = 3'600'000'000'000;
    std::uint64_t when = 0;
    auto const changes = std::make_shared<Changes>(&when, hour_ns, -1);
    auto file = open_file("changes", OpenMode::create);
    ASSERT_TRUE(file);
    (*file)->tell_changes(changes);
    auto const before = now_ns();
    std::byte const byte{1};
    EXPECT_TRUE((*file)->write(0, std::span(&byte, 1)));
    EXPECT_GE(when, before + hour_ns);
    (*file)->tell_changes(nullptr);
    when = 0;
    EXPECT_TRUE((*file)->write(0, std::span(&byte, 1)));
    EXPECT_EQ(when, 0U);
}

TEST(Changes, SurviveTheMachineWhereTheyMust)
{
    std::uint64_t when = 0;
    int const fd = ::open("changes.log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    Changes plain(&when, 0, -1);
    Changes lasting(&when, 0, fd);
    synced = 0;
    plain.note();
    EXPECT_EQ(synced, 0);
    lasting.note();
    EXPECT_EQ(synced, 1);
    lasting.forget();
    lasting.note();
    EXPECT_EQ(synced, 2) << "the log was emptied, and the note with it";
    ::close(fd);
}

TEST(FileTarget, WritesAndReadsVectorsBeyondTheSystemsLimit)
{
    auto file = open_file("vectors", OpenMode::create);
    ASSERT_TRUE(file);
    constexpr std::size_t n = 2 * IOV_MAX + 100;
    std::vector<unsigned char> data(n * 3);
    std::iota(data.begin(), data.end(), static_cast<unsigned char>(0));
    std::vector<iovec> vectors;
    for (std::size_t i = 0; i < n; ++i) vectors.push_back({data.data() + 3 * i, i % 5 == 0 ? 0U : 3U});
    auto reading = vectors;
    EXPECT_TRUE((*file)->write(7, vectors));
    std::size_t bytes = 0;
    for (auto const& vector : reading) bytes += vector.iov_len;
    EXPECT_EQ((*file)->size(), 7 + bytes);
    auto const before = data;
    for (auto const& vector : reading)
        for (std::size_t b = 0; b < vector.iov_len; ++b) static_cast<unsigned char*>(vector.iov_base)[b] = 0;
    EXPECT_EQ((*file)->read(7, reading), bytes);
    EXPECT_EQ(data, before);
    EXPECT_TRUE((*file)->sync());
    EXPECT_TRUE((*file)->close());
    EXPECT_TRUE((*file)->close()) << "twice is harmless";
}

TEST(FileTarget, PatchesPiecesAndLeavesWhatLiesBetween)
{
    auto file = open_file("patched", OpenMode::create);
    ASSERT_TRUE(file);
    std::vector<std::byte> const old(10'000, std::byte{1});
    ASSERT_TRUE((*file)->write(0, old));
    constexpr std::int64_t begin = 5'001;
    constexpr std::int64_t end = 20'002;  // beyond the end, and not on a page
    std::vector<Target::Stretch> stretches;
    for (std::int64_t at = begin; at < end; at += 2) stretches.push_back({at - 7, at - 6});
    std::vector<std::byte> const fresh(20'003, std::byte{2});
    if (!(*file)->patch(7, stretches, fresh.data())) GTEST_SKIP() << "this file system or kernel cannot";
    EXPECT_EQ((*file)->size(), static_cast<std::uint64_t>(end));
    std::vector<std::byte> back(20'002);
    EXPECT_EQ((*file)->read(0, std::span(back)), back.size());
    for (std::int64_t at = 0; at < end; ++at) {
        auto const expected = at >= begin && (at - begin) % 2 == 0 ? 2 : at < 10'000 ? 1 : 0;
        ASSERT_EQ(back[static_cast<std::size_t>(at)], std::byte(expected)) << at;
    }
    auto reading = open_file("patched", OpenMode::read);
    EXPECT_FALSE((*reading)->patch(0, stretches, fresh.data()));
}

TEST(FileTarget, PatchesAFileThatSomebodyTruncatesWithoutASignal)
{
    auto file = open_file("truncated", OpenMode::create);
    ASSERT_TRUE(file);
    constexpr std::int64_t end = 1 << 20;
    std::vector<Target::Stretch> stretches;
    for (std::int64_t at = 0; at < end; at += 128) stretches.push_back({at, at + 64});
    std::vector<std::byte> const fresh(end, std::byte{2});
    if (!(*file)->patch(0, stretches, fresh.data())) GTEST_SKIP() << "this file system or kernel cannot";
    std::atomic<bool> stop = false;
    std::thread cutter([&] {
        while (!stop) (void)::truncate("truncated", 0);
    });
    for (int i = 0; i < 200; ++i) (void)(*file)->patch(0, stretches, fresh.data());
    stop = true;
    cutter.join();
    EXPECT_TRUE((*file)->patch(0, stretches, fresh.data()));
    std::vector<std::byte> back(end);
    EXPECT_EQ((*file)->read(0, std::span(back)), static_cast<std::uint64_t>(end - 64));
    for (std::int64_t at = 0; at < end; ++at)
        ASSERT_EQ(back[static_cast<std::size_t>(at)], std::byte(at % 128 < 64 ? 2 : 0)) << at;
}

TEST(FileTarget, ReadsFewerBytesOnlyAtTheEnd)
{
    auto file = open_file("short", OpenMode::create);
    ASSERT_TRUE(file);
    std::vector<std::byte> const ten(10, std::byte{1});
    ASSERT_TRUE((*file)->write(0, ten));
    std::vector<std::byte> back(100);
    EXPECT_EQ((*file)->read(4, std::span(back)), 6U);
    EXPECT_EQ((*file)->read(10, std::span(back)), 0U);
    EXPECT_EQ((*file)->read(1'000'000, std::span(back)), 0U);
}

TEST(FileTarget, SaysWhyItCannotBeOpened)
{
    auto const missing = open_file("not/there", OpenMode::create);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Errc::not_found);
    EXPECT_EQ(open_file("nothing", OpenMode::read).error().sys_errno, ENOENT);
    EXPECT_EQ(open_file("nothing", OpenMode::update).error().sys_errno, ENOENT);
    for (auto const access : {OpenMode::create, OpenMode::update})
        EXPECT_EQ(open_file(".", access).error().code, Errc::is_directory);
}

TEST(FileTarget, RefusesToWriteWhatWasOpenedForReading)
{
    std::fclose(std::fopen("readonly", "w"));
    auto file = open_file("readonly", OpenMode::read);
    ASSERT_TRUE(file);
    std::vector<std::byte> const byte(1);
    auto const status = (*file)->write(0, byte);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().sys_errno, EBADF);
    EXPECT_NE(status.error().text.find("writing 1 bytes at offset 0"), std::string::npos);
}

TEST(FileTarget, DiscardsWritesButReadsTheFile)
{
    auto file = open_file("kept", OpenMode::create);
    ASSERT_TRUE(file);
    std::vector<std::byte> const ten(10, std::byte{1});
    ASSERT_TRUE((*file)->write(0, ten));
    auto discard = discard_writes(std::move(*file));
    std::vector<std::byte> const other(20, std::byte{2});
    EXPECT_TRUE(discard->write(0, other));
    EXPECT_EQ(discard->size(), 10U);
    std::vector<std::byte> back(10);
    EXPECT_EQ(discard->read(0, std::span(back)), 10U);
    EXPECT_EQ(back, ten);
}

TEST(Storage, KnowsTheFileSystemAndItsBlock)
{
    auto file = open_file("storage", OpenMode::create);
    ASSERT_TRUE(file);
    auto const storage = machine::storage_of((*file)->descriptor());
    ASSERT_TRUE(storage);
    EXPECT_GE(storage->block_bytes, 512);
    EXPECT_GT(storage->write_bw, 0);
    EXPECT_FALSE(machine::storage_of(-1));
}

TEST(Worker, RunsJobsOneAfterTheOther)
{
    Worker worker(machine::allowed_cores(), [] {});
    worker.wait();  // nothing to wait for, not even a thread
    ASSERT_TRUE(worker.launch());
    ASSERT_TRUE(worker.launch()) << "the thread is there already";
    int done = 0;
    for (int i = 0; i < 200; ++i) {
        worker.start([&] { ++done; });
        worker.wait();
        ASSERT_EQ(done, i + 1);
    }
}

TEST(Worker, FinishesItsJobBeforeItGoes)
{
    std::atomic<bool> done = false;
    {
        Worker worker(machine::allowed_cores(), [] {});
        ASSERT_TRUE(worker.launch());
        worker.start([&] {
            ::usleep(20'000);
            done = true;
        });
    }
    EXPECT_TRUE(done);
}

TEST(Worker, TellsOfAJobThatRanOutOfMemoryAndGoesOn)
{
    std::atomic<int> told = 0;
    Worker worker(machine::allowed_cores(), [&] { ++told; });
    ASSERT_TRUE(worker.launch());
    worker.start([] { throw std::bad_alloc(); });
    worker.wait();
    EXPECT_EQ(told, 1);
    bool done = false;
    worker.start([&] { done = true; });
    worker.wait();
    EXPECT_TRUE(done);
    EXPECT_EQ(told, 1);
}

TEST(Worker, LeavesSignalsToTheMainThread)
{
    Worker worker(machine::allowed_cores(), [] {});
    ASSERT_TRUE(worker.launch());
    sigset_t blocked;
    sigemptyset(&blocked);
    worker.start([&] { pthread_sigmask(SIG_BLOCK, nullptr, &blocked); });
    worker.wait();
    EXPECT_TRUE(sigismember(&blocked, SIGINT));
    EXPECT_TRUE(sigismember(&blocked, SIGTERM));
    sigset_t mine;
    pthread_sigmask(SIG_BLOCK, nullptr, &mine);
    EXPECT_FALSE(sigismember(&mine, SIGINT));
}

}  // namespace
}  // namespace tapioca::target
