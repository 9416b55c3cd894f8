// The cost of a million requests in a log: bytes on the tier for each, and memory while they are flushed.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

/// Memory of this process that no file has, in bytes.
std::int64_t anonymous_bytes()
{
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("RssAnon:")) return std::atoll(line.c_str() + 8) * 1024;
    return 0;
}

/// The most of it since it was made, looked at every millisecond.
class Peak {
public:
    Peak() : thread_([this] { run(); }) {}
    Peak(Peak const&) = delete;
    Peak& operator=(Peak const&) = delete;
    ~Peak() { (void)stop(); }
    std::int64_t stop()
    {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
        return most_;
    }

private:
    void run()
    {
        while (!stop_) {
            most_ = std::max(most_, anonymous_bytes());
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    std::atomic<bool> stop_ = false;
    std::int64_t most_ = 0;
    std::thread thread_;
};

TEST(StageMemory, AMillionRequestsTakeLessThan96BytesEach)
{
    constexpr std::int64_t requests = 1'000'000;
    Scratch const scratch;
    auto const stage = fs::absolute(scratch.path("stage")).string();
    fs::create_directory(stage);
    Options options;
    options.stage = "ssd:" + stage;
    options.stage_mapping = StageMapping::process;
    auto file = File::open(MPI_COMM_SELF, scratch.path("file"), Mode::create, options);
    Pattern pattern;
    pattern.add({{0, 8}});
    auto step = file.declare(pattern);
    auto const before = anonymous_bytes();
    for (std::int64_t i = 0; i < requests; ++i) {  // in no order, with gaps, so that none of them join
        auto const place = i * 7'919 % requests;
        step.rebase(place * 16);
        step.write(0, std::as_bytes(std::span(&place, 1)));
        step.finish();
    }
    std::int64_t meta = 0;
    for (auto const& entry : fs::recursive_directory_iterator(stage))
        if (entry.path().extension() == ".meta") meta += static_cast<std::int64_t>(entry.file_size());
    Peak peak;
    file.flush();
    auto const anonymous = peak.stop() - before;
    file.close();
    auto const each = static_cast<double>(meta + anonymous) / requests;
    std::printf("  %.1f bytes a request: %.1f in the log, %.1f in memory at the flush\n", each,
                static_cast<double>(meta) / requests, static_cast<double>(anonymous) / requests);
    EXPECT_LE(each, 96);
    auto const all = contents(scratch.path("file"));
    ASSERT_EQ(all.size(), (requests - 1) * 16 + 8);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < requests; ++i) {
        std::int64_t value = 0;
        std::memcpy(&value, all.data() + i * 16, sizeof value);
        wrong += value != i ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tapioca::test
