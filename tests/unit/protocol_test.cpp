// The shared-memory protocol with threads as ranks: random steps in a row, failures, spoiled and abandoned ones.
#include <atomic>
#include <fstream>
#include <iterator>
#include <mutex>

#include <gtest/gtest.h>

#include "support/thread_ranks.hpp"

namespace tapioca::test {
namespace {

using engine::Exchange;

constexpr std::byte filler{0xEE};

Bytes contents(std::string const& path)
{
    std::ifstream in(path, std::ios::binary);
    std::string const text((std::istreambuf_iterator<char>(in)), {});
    Bytes bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

std::unique_ptr<target::Target> open_update(std::string const& path)
{
    auto file = target::open_file(path, target::Access::update);
    EXPECT_TRUE(file);
    return file ? std::move(*file) : nullptr;
}

/// A new file of `bytes` random bytes, also as an image.
Bytes new_file(std::string const& path, std::size_t bytes, Random& random)
{
    Bytes image(bytes);
    for (auto& byte : image) byte = static_cast<std::byte>(random.pick(0, 255));
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(image.data()), static_cast<std::streamsize>(bytes));
    return image;
}

/// Goes before a file and does something to its reads and writes.
class Wrapper : public target::Target {
public:
    explicit Wrapper(std::unique_ptr<target::Target> file) : file_(std::move(file)) {}
    core::Status write(std::int64_t offset, std::span<iovec> vectors) override
    {
        auto const status = before("writing");
        return status ? file_->write(offset, vectors) : status;
    }
    core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) override
    {
        if (auto const status = before("reading"); !status) return tl::unexpected(status.error());
        return file_->read(offset, vectors);
    }
    core::Status sync() override { return file_->sync(); }
    core::Result<std::uint64_t> size() override { return file_->size(); }
    core::Status close() override { return file_->close(); }

private:
    virtual core::Status before(char const* what) = 0;
    std::unique_ptr<target::Target> file_;
};

/// Fails one call.
class Failing final : public Wrapper {
public:
    Failing(std::unique_ptr<target::Target> file, int at_call, int error)
        : Wrapper(std::move(file)), left_(at_call), error_(error)
    {
    }

private:
    core::Status before(char const* what) override
    {
        return left_.fetch_sub(1) == 1 ? core::fail_errno(error_, what) : core::Status();
    }
    std::atomic<int> left_;
    int error_;
};

/// Makes some calls slow, so that ranks meet in every order.
class Slow final : public Wrapper {
public:
    using Wrapper::Wrapper;

private:
    core::Status before(char const* /*what*/) override
    {
        if (calls_.fetch_add(1) % 5 == 3) std::this_thread::sleep_for(std::chrono::microseconds(300));
        return {};
    }
    std::atomic<int> calls_ = 0;
};

Options random_options(Random& random)
{
    Options options;
    options.buffersize = static_cast<std::uint64_t>(random.pick(1, 8) * 64);
    options.buffers = static_cast<int>(random.pick(1, 4));
    options.nbaggr = static_cast<int>(random.pick(1, 5));
    options.direct = random.chance(15) ? Direct::always : Direct::never;
    return options;
}

Scene random_scene(Random& random, int ranks)
{
    Deal how;
    how.begin = random.pick(0, 3) * random.pick(0, 700);
    how.range = random.pick(1, 8000);
    how.pieces = static_cast<int>(random.pick(1, 60));
    how.variables = static_cast<int>(random.pick(1, 3));
    how.hole_percent = random.one_of<int>({0, 0, 20, 80});
    how.unsorted = random.chance(40);
    how.own_overlap = random.chance(20);
    how.idle_rank = static_cast<int>(random.pick(-1, ranks - 1));
    auto job = random.chance(25) ? interleave(ranks, how.begin, random.pick(1, 40), 20) : deal(random, ranks, how);
    auto scene = make_scene(std::move(job), random_options(random), random.pick(0, 1) * random.pick(0, 3000), 64,
                            static_cast<int>(random.one_of<std::int64_t>({0, 0, 1, 3, 16})));
    scene.plan.job.storage.block_bytes = random.one_of<std::int64_t>({64, 64, 512, 4096});  // as if retargeted
    scene.writing = random.chance(60);
    scene.background = random.chance(50);
    for (auto& variables : scene.data)
        for (auto& bytes : variables)
            for (auto& byte : bytes) byte = scene.writing ? static_cast<std::byte>(random.pick(0, 255)) : filler;
    return scene;
}

/// Random steps and, from the model, what reads must deliver and the file must hold.
struct Story {
    std::vector<Scene> scenes;
    std::vector<std::vector<std::vector<Bytes>>> expected;        // per scene, [rank][variable]
    std::vector<std::vector<std::vector<std::uint64_t>>> counts;  // what received() must say
    Bytes image;
};

Story random_story(int ranks, int steps, std::string const& path)
{
    Random random(static_cast<std::uint64_t>(100 + ranks));
    Story story;
    story.image = new_file(path, 4000, random);
    for (int i = 0; i < steps; ++i) {
        story.scenes.push_back(random_scene(random, ranks));
        auto const& scene = story.scenes.back();
        auto& expected = story.expected.emplace_back(scene.data);
        auto& counts = story.counts.emplace_back();
        for (std::size_t r = 0; r < scene.job.size(); ++r) {
            counts.emplace_back(scene.job[r].size(), 0);
            for (std::size_t v = 0; v < scene.job[r].size(); ++v)
                if (scene.writing)
                    apply(story.image, scene.base, scene.job[r][v], scene.data[r][v]);
                else
                    expected[r][v] = gather(story.image, scene.base, scene.job[r][v], filler, counts[r][v]);
        }
    }
    return story;
}

class Threads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Protocol, Threads, testing::Values(1, 2, 3, 4, 5, 8));

TEST_P(Threads, MoveEveryByteInRandomStepsInARow)
{
    auto const ranks = GetParam();
    for (bool const crowded : {false, true}) {
        auto story = random_story(ranks, 120, "steps");
        on_threads(ranks, story.scenes, [&](Seat& seat, int rank) {
            ASSERT_TRUE(seat.launched);
            seat.patience.crowded = crowded;
            Slow target(open_update("steps"));
            for (std::size_t i = 0; i < story.scenes.size(); ++i) {
                std::vector<std::uint64_t> received;
                auto const status = seat.finish(story.scenes[i], &target, {}, &received);
                EXPECT_TRUE(status) << status.error().text;
                if (story.scenes[i].writing) continue;
                auto const r = static_cast<std::size_t>(rank);
                EXPECT_EQ(received, story.counts[i][r]) << "step " << i;
                EXPECT_TRUE(story.scenes[i].data[r] == story.expected[i][r]) << "step " << i;
            }
        });
        EXPECT_TRUE(contents("steps") == story.image);
    }
}

/// A step of 3 ranks with a partition each and many rounds.
Scene many_rounds(bool writing)
{
    Options options;
    options.buffersize = 64;
    options.buffers = 2;
    options.nbaggr = 3;
    options.direct = Direct::never;
    auto scene = make_scene(interleave(3, 0, 24, 30), options, 0, 64);
    scene.writing = writing;
    for (auto& variables : scene.data) variables[0].assign(variables[0].size(), std::byte{7});
    return scene;
}

TEST(Protocol, AFailureAtAnyCallIsTheSameOnEveryRankAndTheNextStepWorks)
{
    for (bool const writing : {true, false})
        for (int const call : {1, 2, 5, 11})
            for (int const failing : {0, 2}) {
                Random random(1);
                new_file("faulty", 3000, random);
                std::vector<Scene> scenes{many_rounds(writing), many_rounds(true)};
                std::atomic<int> failures = 0;
                on_threads(3, scenes, [&](Seat& seat, int rank) {
                    std::unique_ptr<target::Target> target = open_update("faulty");
                    if (rank == failing) target = std::make_unique<Failing>(std::move(target), call, EIO);
                    auto const status = seat.finish(scenes[0], target.get());
                    if (!status) {
                        ++failures;
                        EXPECT_EQ(status.error().code, Errc::io);
                        EXPECT_EQ(status.error().sys_errno, EIO);
                        EXPECT_EQ(status.error().rank, failing);
                        EXPECT_TRUE(status.error().text.ends_with("Input/output error"));
                    }
                    target = open_update("faulty");
                    EXPECT_TRUE(seat.finish(scenes[1], target.get()));
                });
                // Readers pull as they come: the failing one may never reach its n-th call.
                if (writing || failures > 0) {
                    EXPECT_EQ(failures, 3) << "call " << call << " on rank " << failing;
                }
                auto const bytes = contents("faulty");
                EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + 3 * 24 * 30,
                                        [](std::byte b) { return b == std::byte{7}; }));
            }
}

TEST(Protocol, ARankThatCannotOpenTheFileFailsTheStepForAll)
{
    for (bool const writing : {true, false}) {
        Random random(2);
        new_file("closed", 3000, random);
        std::vector<Scene> scenes{many_rounds(writing)};
        on_threads(3, scenes, [&](Seat& seat, int rank) {
            auto const target = open_update("closed");
            core::Status why;
            if (rank == 1) why = core::fail_errno(EMFILE, "opening");
            auto const status = seat.finish(scenes[0], rank == 1 ? nullptr : target.get(), why);
            ASSERT_FALSE(status);
            EXPECT_EQ(status.error().rank, 1);
            EXPECT_EQ(status.error().sys_errno, EMFILE);
        });
    }
}

TEST(Protocol, ASpoiledRankKeepsEverythingUnwritten)
{
    for (int const spoiled : {0, 1, 2})
        for (bool const background : {false, true}) {
            Random random(3);
            auto const before = new_file("spoiled", 3000, random);
            std::vector<Scene> scenes{many_rounds(true), many_rounds(false)};
            scenes[0].spoiled_rank = spoiled;
            scenes[0].background = background;
            on_threads(3, scenes, [&](Seat& seat, int rank) {
                auto const target = open_update("spoiled");
                auto const status = seat.finish(scenes[0], target.get());
                ASSERT_FALSE(status);
                EXPECT_EQ(status.error().rank, spoiled);
                EXPECT_EQ(status.error().code, Errc::invalid_argument);
                EXPECT_TRUE(seat.finish(scenes[1], target.get())) << "reading what was there on rank " << rank;
            });
            EXPECT_TRUE(contents("spoiled") == before);
            std::uint64_t counted = 0;
            auto const& read = scenes[1];
            EXPECT_TRUE(read.data[1][0] == gather(before, 0, read.job[1][0], filler, counted));
        }
}

TEST(Protocol, ASpoiledReaderStillReadsForTheOthers)
{
    Random random(4);
    auto const image = new_file("spoiledread", 3000, random);
    std::vector<Scene> scenes{many_rounds(false)};
    scenes[0].spoiled_rank = 0;
    on_threads(3, scenes, [&](Seat& seat, int) {
        auto const target = open_update("spoiledread");
        EXPECT_FALSE(seat.finish(scenes[0], target.get()));
    });
    std::uint64_t counted = 0;
    EXPECT_TRUE(scenes[0].data[2][0] == gather(image, 0, scenes[0].job[2][0], filler, counted));
}

TEST(Protocol, AbandonedRunsEndWithoutTheOtherRanks)
{
    for (bool const writing : {true, false})
        for (int const most_advances : {0, 1, 3}) {
            Random random(5);
            new_file("abandoned", 3000, random);
            std::vector<Scene> scenes{many_rounds(writing)};
            scenes[0].background = true;
            on_threads(3, scenes, [&](Seat& seat, int rank) {
                auto const target = open_update("abandoned");
                if (rank == 2) return;  // never even starts
                auto run = seat.start(scenes[0], target.get());
                for (int i = 0; i < most_advances * rank; ++i) (void)run->advance();
                run.reset();
            });
        }
}

}  // namespace
}  // namespace tapioca::test
