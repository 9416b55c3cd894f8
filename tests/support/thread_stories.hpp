// Sequences of random steps for ranks that are threads, their expected results, and the files that they use.
#pragma once

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include "support/thread_ranks.hpp"

namespace tapioca::test {

inline constexpr std::byte filler{0xEE};

inline Bytes contents(std::string const& path)
{
    std::ifstream in(path, std::ios::binary);
    std::string const text((std::istreambuf_iterator<char>(in)), {});
    Bytes bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

inline std::unique_ptr<target::Target> open_update(std::string const& path)
{
    auto file = target::open_file(path, target::OpenMode::update);
    EXPECT_TRUE(file);
    return file ? std::move(*file) : nullptr;
}

/// Creates a file of `bytes` random bytes, and returns them.
inline Bytes new_file(std::string const& path, std::size_t bytes, Random& random)
{
    Bytes image(bytes);
    for (auto& byte : image) byte = static_cast<std::byte>(random.pick(0, 255));
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(image.data()), static_cast<std::streamsize>(bytes));
    return image;
}

/// A target that modifies the reads and writes of a file.
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

inline Options random_options(Random& random)
{
    Options options;
    options.buffersize = static_cast<std::uint64_t>(random.pick(1, 8) * 64);
    options.buffers = static_cast<int>(random.pick(1, 4));
    options.nbaggr = static_cast<int>(random.pick(1, 5));
    options.direct = random.chance(15) ? Direct::always : Direct::never;
    return options;
}

inline Scene random_scene(Random& random, int ranks, plan::Nodes const& nodes = {})
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
                            static_cast<int>(random.one_of<std::int64_t>({0, 0, 1, 3, 16})), nodes);
    if (nodes.empty())  // as if retargeted
        scene.plan.job.storage.block_bytes = random.one_of<std::int64_t>({64, 64, 512, 4096});
    scene.writing = random.chance(60);
    scene.background = random.chance(50);
    for (auto& variables : scene.data)
        for (auto& bytes : variables)
            for (auto& byte : bytes) byte = scene.writing ? static_cast<std::byte>(random.pick(0, 255)) : filler;
    return scene;
}

/// Random steps and, from the model, what reads must return and the file must contain.
struct Story {
    std::vector<Scene> scenes;
    std::vector<std::vector<std::vector<Bytes>>> expected;        // per scene, [rank][variable]
    std::vector<std::vector<std::vector<std::uint64_t>>> counts;  // what received() must return
    Bytes image;
};

inline Story random_story(int ranks, int steps, std::string const& path, plan::Nodes const& nodes = {})
{
    Random random(static_cast<std::uint64_t>(100 + ranks));
    Story story;
    story.image = new_file(path, 4000, random);
    for (int i = 0; i < steps; ++i) {
        story.scenes.push_back(random_scene(random, ranks, nodes));
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

/// Every rank runs all steps of a story on its own target, and checks the results after each.
inline void live(Story& story, ThreadRank& thread_rank, int rank, target::Target& target)
{
    ASSERT_TRUE(thread_rank.launched);
    auto const r = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < story.scenes.size(); ++i) {
        std::vector<std::uint64_t> received;
        auto const status = thread_rank.finish(story.scenes[i], &target, {}, &received);
        EXPECT_TRUE(status) << status.error().text;
        if (story.scenes[i].writing) continue;
        EXPECT_EQ(received, story.counts[i][r]) << "step " << i;
        EXPECT_TRUE(story.scenes[i].data[r] == story.expected[i][r]) << "step " << i;
    }
}

}  // namespace tapioca::test
