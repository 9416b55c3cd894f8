// BufferLayout: nothing in a node's memory overlaps, and all nodes agree on where things lie.
#include "engine/buffer_layout.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "engine/exchange.hpp"
#include "plan/memory.hpp"
#include "support/layouts.hpp"

namespace tapioca::engine {
namespace {

using test::pick;

/// `partitions` with homes and feeders as they come.
plan::Route random_route(std::mt19937_64& random, int nodes, std::size_t partitions)
{
    plan::Route route;
    route.way = plan::Way::aggregated;
    route.aggregators = static_cast<int>(partitions);
    route.round_bytes = static_cast<std::uint64_t>(pick(random, 1, 20)) * 4096;
    route.buffers = static_cast<int>(pick(random, 1, 4));
    route.granule = static_cast<std::uint64_t>(1) << pick(random, 0, 3);
    route.dense = pick(random, 0, 1) == 0;
    auto& network = route.network;
    for (int node = 0; node < nodes; ++node)
        network.slot_bytes.push_back(64 * static_cast<std::uint64_t>(pick(random, 1, 1000)));
    for (std::size_t p = 0; p < partitions; ++p) {
        network.homes.push_back(static_cast<int>(pick(random, 0, nodes - 1)));
        for (int node = 0; node < nodes; ++node)
            if (pick(random, 0, 2) > 0) network.feeds.push_back({node, p, p + 1});
    }
    for (int node = 0; node < nodes; ++node) network.senders.push_back({2 * node, 2 * node + 1});
    std::stable_sort(network.feeds.begin(), network.feeds.end(),
                     [](auto const& a, auto const& b) { return a.node < b.node; });
    return route;
}

struct Stretch {
    std::uint64_t begin, bytes;
};

void expect_apart(std::vector<Stretch> stretches, std::uint64_t within)
{
    std::sort(stretches.begin(), stretches.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    std::uint64_t end = 0;
    for (auto const& stretch : stretches) {
        EXPECT_GE(stretch.begin, end);
        end = stretch.begin + stretch.bytes;
    }
    EXPECT_LE(end, within);
}

TEST(BufferLayout, NothingOverlapsOnAnyNodeAndAllHaveTheSameSize)
{
    std::mt19937_64 random(4);
    for (int trial = 0; trial < 500; ++trial) {
        auto const nodes = static_cast<int>(pick(random, 2, 6));
        auto const route = random_route(random, nodes, static_cast<std::size_t>(pick(random, 1, 12)));
        auto const& network = route.network;
        auto const buffers = static_cast<std::size_t>(route.buffers);
        std::vector<BufferLayout> sites;
        for (int node = 0; node < nodes; ++node) sites.emplace_back(route, node);
        std::uint64_t fullest = 0;
        for (int node = 0; node < nodes; ++node) {
            auto const& buffer_layout = sites[static_cast<std::size_t>(node)];
            EXPECT_EQ(buffer_layout.bytes(), sites[0].bytes());
            EXPECT_EQ(buffer_layout.map_bytes(), sites[0].map_bytes());
            std::vector<Stretch> memory;
            std::vector<Stretch> maps;
            for (std::size_t p = 0; p < network.homes.size(); ++p) {
                bool const home = network.homes[p] == node;
                EXPECT_EQ(buffer_layout.is_home(p), home);
                for (std::size_t b = 0; b < buffers && home; ++b) {
                    memory.push_back({buffer_layout.buffer(p, b), route.round_bytes});
                    maps.push_back({buffer_layout.map(p, b), route.map_bytes()});
                }
                auto const feeders = network.feeders(p);
                for (std::size_t f = 0; f < feeders.size(); ++f) {
                    auto const slot = network.slot_bytes[static_cast<std::size_t>(feeders[f])];
                    for (std::size_t side = 0; side < 2 && home; ++side)
                        memory.push_back({buffer_layout.feeders(p)[f].landing[side], slot});
                    for (std::size_t b = 0; b < buffers && feeders[f] == node; ++b)
                        memory.push_back({buffer_layout.slot(p, b), slot});
                }
            }
            expect_apart(memory, buffer_layout.bytes());
            expect_apart(maps, buffer_layout.map_bytes());
            for (auto const& stretch : memory) fullest = std::max(fullest, stretch.begin + stretch.bytes);
        }
        EXPECT_EQ(sites[0].bytes(), fullest) << "no more than the fullest node needs";
        auto const counted = plan::shared_bytes(route, plan::Nodes(static_cast<std::size_t>(nodes), {0}));
        EXPECT_EQ(counted.segment_bytes, sites[0].bytes()) << "as the plan has it";
        EXPECT_EQ(counted.map_bytes, sites[0].map_bytes());
        if (testing::Test::HasFailure()) return;
    }
}

/// Sixteen ranks on each of 128 nodes with little to do take less than 1 MB of a node: nothing of the exchange grows
/// with the ranks of the job, and its counters with the partitions alone.
TEST(BufferLayout, TheExchangeOfManyNodesIsSmall)
{
    std::mt19937_64 random(11);
    auto route = random_route(random, 128, 8);
    route.buffers = 2;
    EXPECT_LE(Exchange::bytes(16) + Exchange::lane_bytes(16, BufferLayout(route, 0).lanes()), 120'000U);
    for (int trial = 0; trial < 100; ++trial) {
        route = random_route(random, 4, static_cast<std::size_t>(pick(random, 1, 40)));
        auto const ranks = static_cast<int>(pick(random, 1, 20));
        EXPECT_EQ(plan::counter_bytes(route, static_cast<std::uint64_t>(ranks)),
                  Exchange::lane_bytes(ranks, BufferLayout(route, 0).lanes()))
            << "as the plan has it";
    }
}

TEST(BufferLayout, AFeederKnowsWhereItsDataGoesOnTheAggregatorsNode)
{
    std::mt19937_64 random(5);
    for (int trial = 0; trial < 200; ++trial) {
        auto const route = random_route(random, 4, 6);
        auto const& network = route.network;
        for (std::size_t p = 0; p < network.homes.size(); ++p) {
            BufferLayout const home(route, network.homes[p]);
            auto const feeders = network.feeders(p);
            for (std::size_t f = 0; f < feeders.size(); ++f) {
                BufferLayout const feeder(route, feeders[f]);
                ASSERT_EQ(feeder.feeders(p).size(), 1U);
                EXPECT_EQ(feeder.feeders(p)[0].node, feeders[f]);
                EXPECT_EQ(feeder.feeders(p)[0].rank, home.feeders(p)[f].rank);
                for (std::size_t side = 0; side < 2; ++side)
                    EXPECT_EQ(feeder.feeders(p)[0].landing[side], home.feeders(p)[f].landing[side]);
                for (std::size_t b = 0; b < static_cast<std::size_t>(route.buffers); ++b)
                    EXPECT_EQ(feeder.buffer(p, b), home.buffer(p, b));
            }
        }
    }
}

TEST(BufferLayout, OfOneNodeHasBuffersOnlyAndOfDirectAccessNothing)
{
    plan::Route route;
    EXPECT_EQ(BufferLayout(route, 0).bytes(), 0U);
    route.way = plan::Way::aggregated;
    route.aggregators = 3;
    route.round_bytes = 8192;
    route.buffers = 2;
    route.granule = 8;
    BufferLayout const buffer_layout(route, 0);
    EXPECT_EQ(buffer_layout.bytes(), 3U * 2 * 8192);
    EXPECT_EQ(buffer_layout.map_bytes(), 3U * 2 * route.map_bytes());
    EXPECT_EQ(buffer_layout.buffer(2, 1), 5U * 8192);
}

}  // namespace
}  // namespace tapioca::engine
