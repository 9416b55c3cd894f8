// Extensions that take one class each: a target other than a file, and communication between nodes without MPI.
// Messages between threads show every access of filler, drainer, taker, loader and carrier to ThreadSanitizer.
#include <cstring>
#include <mutex>

#include <gtest/gtest.h>

#include "support/thread_nodes.hpp"
#include "support/thread_stories.hpp"

namespace tapioca::test {
namespace {

/// A place for data that is no file: bytes in memory, of which all ranks' targets are one.
class InMemory final : public target::Target {
public:
    struct Place {
        std::mutex mutex;
        Bytes bytes;
    };
    explicit InMemory(Place& place) : place_(place) {}

    core::Status write(std::int64_t offset, std::span<iovec> vectors) override
    {
        std::lock_guard const lock(place_.mutex);
        auto at = static_cast<std::size_t>(offset);
        for (auto const& [data, bytes] : vectors) {
            if (place_.bytes.size() < at + bytes) place_.bytes.resize(at + bytes);
            std::memcpy(place_.bytes.data() + at, data, bytes);
            at += bytes;
        }
        return {};
    }
    core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) override
    {
        std::lock_guard const lock(place_.mutex);
        auto at = std::min(static_cast<std::size_t>(offset), place_.bytes.size());
        auto const from = at;
        for (auto const& [data, bytes] : vectors) {
            auto const there = std::min(bytes, place_.bytes.size() - at);
            if (there > 0) std::memcpy(data, place_.bytes.data() + at, there);
            at += there;
        }
        return at - from;
    }
    core::Status sync() override { return {}; }
    core::Result<std::uint64_t> size() override { return place_.bytes.size(); }
    core::Status close() override { return {}; }

private:
    Place& place_;
};

TEST(Target, MayBeSomethingElseThanAFile)
{
    auto story = random_story(3, 60, "elsewhere");
    InMemory::Place place;
    place.bytes = contents("elsewhere");
    on_threads(3, story.scenes, [&](ThreadRank& thread_rank, int rank) {
        InMemory target(place);
        live(story, thread_rank, rank, target);
    });
    EXPECT_TRUE(place.bytes == story.image);
}

class Nodes : public testing::TestWithParam<plan::Nodes> {};
INSTANTIATE_TEST_SUITE_P(Carrier, Nodes,
                         testing::Values(plan::Nodes{{0}, {1}}, plan::Nodes{{0, 1}, {2}},
                                         plan::Nodes{{0, 2}, {1, 3}, {4}}));

int ranks_of(plan::Nodes const& nodes)
{
    std::size_t ranks = 0;
    for (auto const& node : nodes) ranks += node.size();
    return static_cast<int>(ranks);
}

TEST_P(Nodes, AreCrossedInRandomStepsInARow)
{
    auto const& nodes = GetParam();
    auto story = random_story(ranks_of(nodes), 60, "nodes", nodes);
    on_nodes(nodes, story.scenes, [&](ThreadRank& thread_rank, int rank) {
        Slow target(open_update("nodes"));
        live(story, thread_rank, rank, target);
    });
    EXPECT_TRUE(contents("nodes") == story.image);
}

TEST_P(Nodes, AreCrossedByLargePiecesWithoutACopyOnTheWay)
{
    auto const& nodes = GetParam();
    Options options;
    options.buffersize = 1 << 20;
    options.nbaggr = 1;
    options.direct = Direct::never;
    Random random(6);
    Story story;
    story.image = new_file("large", 64, random);
    for (bool const writing : {true, false}) {
        auto scene = make_scene(interleave(ranks_of(nodes), 0, 300'000, 3), options, 0, 4096, 0, nodes);
        scene.writing = writing;
        scene.background = true;
        auto& expected = story.expected.emplace_back(scene.data);
        auto& counts = story.counts.emplace_back();
        for (std::size_t r = 0; r < scene.data.size(); ++r) {
            auto& data = scene.data[r][0];
            std::memset(data.data(), writing ? static_cast<int>(r) + 1 : 0, data.size());
            if (writing) apply(story.image, 0, scene.job[r][0], data);
            expected[r][0].assign(data.size(), static_cast<std::byte>(r + 1));
            counts.push_back({data.size()});
        }
        story.scenes.push_back(std::move(scene));
    }
    on_nodes(nodes, story.scenes, [&](ThreadRank& thread_rank, int rank) {
        auto const target = open_update("large");
        live(story, thread_rank, rank, *target);
    });
    EXPECT_TRUE(contents("large") == story.image);
}

TEST_P(Nodes, WriteNothingIfARankOfAnotherNodeIsSpoiled)
{
    auto const& nodes = GetParam();
    Random random(7);
    auto const before = new_file("spoilednodes", 3000, random);
    for (int spoiled = 0; spoiled < ranks_of(nodes); ++spoiled) {
        Options options;
        options.buffersize = 64;
        options.nbaggr = 2;
        options.direct = Direct::never;
        std::vector<Scene> scenes;
        scenes.push_back(make_scene(interleave(ranks_of(nodes), 0, 24, 20), options, 0, 64, 0, nodes));
        scenes[0].spoiled_rank = spoiled;
        on_nodes(nodes, scenes, [&](ThreadRank& thread_rank, int) {
            auto const target = open_update("spoilednodes");
            auto const status = thread_rank.finish(scenes[0], target.get());
            ASSERT_FALSE(status);
            EXPECT_EQ(status.error().rank, spoiled);
        });
        EXPECT_TRUE(contents("spoilednodes") == before) << "rank " << spoiled;
    }
}

}  // namespace
}  // namespace tapioca::test
