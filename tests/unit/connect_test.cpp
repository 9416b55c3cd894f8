// Connecting nodes: where aggregators are placed, which nodes feed them and which ranks send, and the cost.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "plan/memory.hpp"
#include "support/layouts.hpp"
#include "support/machines.hpp"

namespace tapioca::plan {
namespace {

using test::pick;
using NodeRanks = std::vector<std::vector<int>>;

constexpr std::int64_t one_MiB = 1 << 20;

Options across_nodes(int aggregators, std::uint64_t buffersize, char const* transport = "p2p")
{
    Options options;
    options.direct = Direct::never;
    options.nbaggr = aggregators;
    options.buffersize = buffersize;
    options.transport = transport;
    return options;
}

/// Bytes of an extent in [begin, end).
std::uint64_t part(Extent const& extent, std::int64_t begin, std::int64_t end)
{
    auto const bytes = std::min(end, extent.offset + extent.length) - std::max(begin, extent.offset);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes));
}

/// The plan of a job on several nodes, before connect().
Plan unconnected(std::vector<std::vector<Extent>> const& ranks, std::size_t nodes, Options const& options)
{
    Job job;
    for (auto const& extents : ranks) {
        Pattern pattern;
        pattern.add(extents);
        job.pattern.add(pattern::summarise(tapioca::pattern::variables_of(pattern)));
    }
    job.storage = machine::storage_profile("tmpfs");
    job.options = options;
    job.ranks = static_cast<int>(ranks.size());
    job.nodes = static_cast<int>(nodes);
    job.cores = 4;
    job.machine = test::flat_machine(job.nodes);
    job.free_bytes = {{std::uint64_t{1} << 36}};
    auto plan = make(job, {});
    EXPECT_TRUE(plan) << plan.error().text;
    return plan ? *plan : Plan{};
}

std::vector<Weight> weigh(std::vector<std::vector<Extent>> const& ranks, NodeRanks const& nodes,
                          std::vector<std::int64_t> const& cuts)
{
    std::vector<Weight> weights;
    for (std::size_t node = 0; node < nodes.size(); ++node)
        for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
            std::uint64_t bytes = 0;
            for (int const rank : nodes[node])
                for (auto const& extent : ranks[static_cast<std::size_t>(rank)])
                    bytes += part(extent, cuts[p], cuts[p + 1]);
            if (bytes > 0) weights.push_back({static_cast<int>(node), p, p + 1, bytes, bytes});
        }
    return weights;
}

Census asking(std::vector<std::vector<Extent>> const& ranks, NodeRanks const& nodes)
{
    return {[&](auto const& cuts) { return weigh(ranks, nodes, cuts); }, all_bids};
}

Plan connected(std::vector<std::vector<Extent>> const& ranks, NodeRanks const& nodes, Options const& options)
{
    auto plan = unconnected(ranks, nodes.size(), options);
    EXPECT_TRUE(wants_election(plan.job, plan.write));
    connect(plan, nodes, asking(ranks, nodes));
    EXPECT_TRUE(plan.write.feasible) << plan.write.feasible.error().text;
    EXPECT_TRUE(plan.read.feasible) << plan.read.feasible.error().text;
    return plan;
}

/// Rank r has block r of `bytes`.
std::vector<std::vector<Extent>> in_blocks(int ranks, std::int64_t bytes)
{
    std::vector<std::vector<Extent>> result;
    for (int r = 0; r < ranks; ++r) result.push_back({{r * bytes, bytes}});
    return result;
}

std::vector<std::vector<Extent>> in_turn(int ranks, std::int64_t block, int blocks)
{
    std::vector<std::vector<Extent>> result(static_cast<std::size_t>(ranks));
    for (std::int64_t i = 0; i < std::int64_t{blocks} * ranks; ++i)
        result[static_cast<std::size_t>(i % ranks)].push_back({i * block, block});
    return result;
}

TEST(Connect, CountsWhatCrossesByHand)
{
    // Four ranks of 1 MiB, two partitions of 2 MiB.
    auto const near = connected(in_blocks(4, one_MiB), {{0, 1}, {2, 3}}, across_nodes(2, 65536));
    EXPECT_EQ(near.write.cuts, (std::vector<std::int64_t>{0, 2 * one_MiB, 4 * one_MiB}));
    EXPECT_EQ(near.write.network.homes, (std::vector<int>{0, 1}));
    EXPECT_EQ(near.write.network.crossing_bytes, 0U);
    EXPECT_TRUE(near.write.network.feeders(0).empty() && near.write.network.feeders(1).empty());
    EXPECT_EQ(near.write.network.slot_bytes, (std::vector<std::uint64_t>{0, 0}));

    auto const dealt = connected(in_blocks(4, one_MiB), {{0, 2}, {1, 3}}, across_nodes(2, 65536));
    EXPECT_EQ(dealt.write.network.crossing_bytes, 2U * one_MiB);
    EXPECT_EQ(dealt.write.network.most_in_bytes, 1U * one_MiB);
    EXPECT_EQ(dealt.write.network.most_out_bytes, 1U * one_MiB);

    auto const one = connected(in_blocks(4, one_MiB), {{0, 1}, {2, 3}}, across_nodes(1, 65536));
    EXPECT_EQ(one.write.network.homes.size(), 1U);
    EXPECT_EQ(one.write.network.crossing_bytes, 2U * one_MiB);
    EXPECT_EQ(one.write.network.most_in_bytes, 2U * one_MiB);
    EXPECT_EQ(one.write.network.most_out_bytes, 2U * one_MiB);
}

TEST(Connect, AnAggregatorGoesToTheNodeWithMostOfItsData)
{
    auto const swapped = connected(in_blocks(4, one_MiB), {{2, 3}, {0, 1}}, across_nodes(2, 65536));
    EXPECT_EQ(swapped.write.network.homes, (std::vector<int>{1, 0}));
    EXPECT_EQ(swapped.write.network.crossing_bytes, 0U);
    // Both nodes have data in both partitions, each a quarter of one and the rest of the other.
    auto const contested = connected({{{0, one_MiB}, {5 * one_MiB, 3 * one_MiB}}, {{one_MiB, 4 * one_MiB}}}, {{0}, {1}},
                                     across_nodes(2, 65536));
    EXPECT_EQ(contested.write.network.homes, (std::vector<int>{1, 0}));
    EXPECT_EQ(contested.write.network.crossing_bytes, 2U * one_MiB);
    // Node 2 has all data: it takes as many aggregators as it has ranks.
    std::vector<std::vector<Extent>> ranks(6);
    ranks[4] = {{0, 3 * one_MiB}};
    ranks[5] = {{3 * one_MiB, 3 * one_MiB}};
    auto const lopsided = connected(ranks, {{0, 1}, {2, 3}, {4, 5}}, across_nodes(3, 65536));
    auto homes = lopsided.write.network.homes;
    std::sort(homes.begin(), homes.end());
    EXPECT_EQ(homes[1], 2);
    EXPECT_EQ(homes[2], 2);
    EXPECT_NE(homes[0], 2);
    EXPECT_EQ(lopsided.write.network.crossing_bytes, 2U * one_MiB);
    EXPECT_EQ(lopsided.write.network.most_out_bytes, 2U * one_MiB);
    EXPECT_EQ(lopsided.write.network.most_in_bytes, 2U * one_MiB);
}

TEST(Connect, UnevenNodesTakeWhatTheirRanksAllow)
{
    NodeRanks const nodes = {{0}, {1, 2, 3, 4}};
    auto const count = [&](int aggregators) {
        auto const plan = connected(in_turn(5, 4096, 256), nodes, across_nodes(aggregators, 65536));
        std::set<int> const distinct(plan.write.ranks.begin(), plan.write.ranks.end());
        EXPECT_EQ(distinct.size(), plan.write.ranks.size()) << "a rank has one partition";
        auto const& homes = plan.write.network.homes;
        return std::pair(std::count(homes.begin(), homes.end(), 0), std::count(homes.begin(), homes.end(), 1));
    };
    // Gathered on the larger node, a fifth of the data crosses; on the other, four fifths.
    EXPECT_EQ(count(2), std::pair(0L, 2L));
    EXPECT_EQ(count(3), std::pair(1L, 2L));
    EXPECT_EQ(count(5), std::pair(1L, 4L));
}

void expect_consistent(Plan const& plan, NodeRanks const& nodes, std::vector<Weight> const& weights)
{
    for (auto const* const route : {&plan.write, &plan.read}) {
        auto const& network = route->network;
        auto const partitions = route->cuts.size() - 1;
        ASSERT_EQ(network.homes.size(), partitions);
        ASSERT_EQ(network.senders.size(), nodes.size());
        ASSERT_EQ(network.slot_bytes.size(), nodes.size());
        std::set<int> const aggregators(route->ranks.begin(), route->ranks.end());
        EXPECT_EQ(aggregators.size(), partitions);
        std::vector<int> count(nodes.size(), 0);
        std::set<std::pair<int, std::size_t>> fed;
        std::vector<std::vector<int>> senders(partitions);
        network.each_feeder([&](std::size_t p, int node, int sender) {
            EXPECT_EQ(network.feeders(p)[senders[p].size()], node);
            senders[p].push_back(sender);
        });
        for (std::size_t p = 0; p < partitions; ++p) {
            auto const& home = nodes[static_cast<std::size_t>(network.homes[p])];
            ++count[static_cast<std::size_t>(network.homes[p])];
            EXPECT_NE(std::find(home.begin(), home.end(), route->ranks[p]), home.end());
            auto const feeders = network.feeders(p);
            EXPECT_TRUE(std::is_sorted(feeders.begin(), feeders.end()));
            ASSERT_EQ(senders[p].size(), feeders.size());
            for (std::size_t f = 0; f < feeders.size(); ++f) {
                fed.insert({feeders[f], p});
                EXPECT_NE(feeders[f], network.homes[p]);
                EXPECT_GT(network.slot_bytes[static_cast<std::size_t>(feeders[f])], 0U);
                EXPECT_EQ(network.slot_bytes[static_cast<std::size_t>(feeders[f])] % 64, 0U);
                auto const& node = nodes[static_cast<std::size_t>(feeders[f])];
                auto const sender = senders[p][f];
                EXPECT_NE(std::find(node.begin(), node.end(), sender), node.end()) << "sends for its own node";
                bool const all_aggregate =
                    std::all_of(node.begin(), node.end(), [&](int rank) { return aggregators.contains(rank); });
                EXPECT_TRUE(all_aggregate || !aggregators.contains(sender));
            }
        }
        std::set<std::pair<int, std::size_t>> wanted;
        std::uint64_t crossing = 0;
        for (auto const& weight : weights)
            if (network.homes[weight.begin] != weight.node) {
                wanted.insert({weight.node, weight.begin});
                crossing += weight.bytes;
            }
        EXPECT_EQ(fed, wanted);
        EXPECT_EQ(network.crossing_bytes, crossing);
        for (std::size_t node = 0; node < nodes.size(); ++node)
            EXPECT_LE(count[node], static_cast<int>(nodes[node].size()));
    }
}

TEST(Connect, FeedersAndSendersBelongTogetherOnRandomJobs)
{
    std::mt19937_64 random(9);
    for (int trial = 0; trial < 400; ++trial) {
        NodeRanks nodes(static_cast<std::size_t>(pick(random, 2, 6)));
        int ranks = 0;
        for (auto& node : nodes)
            for (auto left = pick(random, 1, 5); left > 0; --left) node.push_back(ranks++);
        auto const data = in_turn(ranks, pick(random, 1, 20'000), static_cast<int>(pick(random, 1, 40)));
        auto const options =
            across_nodes(static_cast<int>(pick(random, 1, ranks)), 65536, pick(random, 0, 1) == 0 ? "p2p" : "rma");
        auto plan = unconnected(data, nodes.size(), options);
        auto weights = weigh(data, nodes, plan.write.cuts);
        // Some may come to feed when the step is shifted.
        if (pick(random, 0, 1) == 1)
            for (std::size_t p = 0; p + 1 < plan.write.cuts.size(); ++p) {
                auto const there = [&](Weight const& w) { return w.node == 0 && w.begin == p; };
                if (std::none_of(weights.begin(), weights.end(), there)) weights.push_back({0, p, p + 1, 0, 0});
            }
        std::shuffle(weights.begin(), weights.end(), random);
        connect(plan, nodes, {[&](auto const&) { return weights; }, all_bids});
        ASSERT_TRUE(plan.write.feasible && plan.read.feasible);
        expect_consistent(plan, nodes, weights);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Connect, SeveralSendersShareTheWorkOfANode)
{
    NodeRanks const nodes = {{0, 1, 2, 3}, {4, 5, 6, 7}};
    auto const plan = connected(in_turn(8, 4096, 256), nodes, across_nodes(4, 65536));
    std::set<int> senders;
    plan.write.network.each_feeder([&](std::size_t, int, int sender) { senders.insert(sender); });
    EXPECT_EQ(senders.size(), 4U);
}

/// What the network costs the process that it costs most.
std::uint64_t memory_of(Route const& route, NodeRanks const& nodes)
{
    auto const& network = route.network;
    std::uint64_t landing = 0;
    std::vector<std::uint64_t> slots(nodes.size(), 0);
    for (std::size_t p = 0; p < network.homes.size(); ++p) {
        std::uint64_t here = 0;
        for (int const node : network.feeders(p)) {
            auto const bytes = network.slot_bytes[static_cast<std::size_t>(node)];
            here += 2 * bytes;
            slots[static_cast<std::size_t>(node)] += bytes * static_cast<std::uint64_t>(route.buffers);
        }
        landing = std::max(landing, here);
    }
    std::uint64_t share = 0;
    for (std::size_t node = 0; node < nodes.size(); ++node) share = std::max(share, slots[node] / nodes[node].size());
    return route.memory_per_aggregator() + landing + share;
}

TEST(Connect, KeepsTheMemoryCapOrSaysThatItCannot)
{
    NodeRanks const nodes = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    auto const data = in_turn(8, 4096, 2048);
    int kept = 0;
    int refused = 0;
    for (auto const* const transport : {"p2p", "rma"})
        for (std::uint64_t cap = 20 * 1024; cap < (std::uint64_t{64} << 20); cap = cap * 3 / 2) {
            auto options = across_nodes(4, one_MiB, transport);
            options.memory = cap;
            Job job;
            for (auto const& extents : data) {
                Pattern pattern;
                pattern.add(extents);
                job.pattern.add(pattern::summarise(tapioca::pattern::variables_of(pattern)));
            }
            job.pattern.most_bookkeeping_bytes = 100;
            job.storage = machine::storage_profile("tmpfs");
            job.options = options;
            job.ranks = 8;
            job.nodes = 4;
            job.cores = 4;
            job.machine = test::flat_machine(4);
            job.free_bytes = {{std::uint64_t{1} << 36}};
            auto plan = make(job, {});
            if (!plan) {
                ++refused;
                EXPECT_EQ(plan.error().code, Errc::memory);
                continue;
            }
            connect(*plan, nodes, asking(data, nodes));
            auto const& status = plan->write.feasible ? plan->read.feasible : plan->write.feasible;
            if (!status) {
                ++refused;
                EXPECT_EQ(status.error().code, Errc::memory);
                EXPECT_NE(status.error().text.find("TAPIOCA_MEMORY"), std::string::npos);
                continue;
            }
            ++kept;
            for (auto const* const route : {&plan->write, &plan->read}) {
                EXPECT_LE(memory_of(*route, nodes) + 100, cap) << transport;
                EXPECT_GE(route->round_bytes, 4096U);
                EXPECT_EQ(route->round_bytes % 4096, 0U);
                for (std::size_t node = 0; node < nodes.size(); ++node) {
                    auto const slot = route->network.slot_bytes[node];
                    auto const requests = route->network.request_bytes[node];
                    EXPECT_GE(slot, 1024U) << transport << " " << cap;
                    EXPECT_EQ(requests % 64, 0U);
                    EXPECT_GE(requests, 128U) << "room for a heading and an entry";
                    EXPECT_GE(slot - requests, slot / 2) << "the reply has the most";
                }
            }
        }
    EXPECT_GT(kept, 10);
    EXPECT_GT(refused, 0);
}

std::uint64_t all_shared(Route const& route, NodeRanks const& nodes)
{
    auto const shared = shared_bytes(route, nodes);
    return shared.segment_bytes + shared.map_bytes + shared.counter_bytes;
}

NodeRanks equal_nodes(int nodes, int per_node)
{
    NodeRanks each(static_cast<std::size_t>(nodes));
    for (int r = 0; r < nodes * per_node; ++r) each[static_cast<std::size_t>(r / per_node)].push_back(r);
    return each;
}

/// Ranks with `bytes` each, in blocks of `block` in turn; with so much free on a node.
Plan by_default(int nodes, std::int64_t bytes, std::int64_t block, std::uint64_t free, Options options = {},
                int per_node = 1)
{
    options.direct = Direct::never;
    Job job;
    std::vector<pattern::Variables> ranks;
    auto const all = nodes * per_node;
    for (int r = 0; r < all; ++r) {
        Pattern pattern;
        pattern.add(Subarray{{bytes / block, all * block}, {0, r * block}, {bytes / block, block}, {}, 1, 0});
        ranks.push_back(tapioca::pattern::variables_of(pattern));
        job.pattern.add(pattern::summarise(ranks.back()));
    }
    job.storage = machine::storage_profile("tmpfs");
    job.options = options;
    job.ranks = all;
    job.nodes = nodes;
    job.cores = 4;
    job.machine = test::flat_machine(nodes);
    job.free_bytes = {{free}};
    auto plan = make(job, {});
    EXPECT_TRUE(plan);
    auto const unit = plan->write.unit;
    auto const each = equal_nodes(nodes, per_node);
    auto const weigh = [&](auto const& cuts) {
        std::vector<Weight> weights;
        for (int node = 0; node < nodes; ++node) {
            pattern::Scale scale(cuts, unit);
            for (int const r : each[static_cast<std::size_t>(node)]) scale.add(ranks[static_cast<std::size_t>(r)]);
            auto const here = weights_of(node, scale.weights(), each.size());
            weights.insert(weights.end(), here.begin(), here.end());
        }
        return weights;
    };
    connect(*plan, each, {weigh, all_bids});
    EXPECT_TRUE(plan->write.feasible) << plan->write.feasible.error().text;
    EXPECT_TRUE(plan->read.feasible) << plan->read.feasible.error().text;
    for (auto const* const route : {&plan->write, &plan->read})
        EXPECT_LE(all_shared(*route, each), options.buffersize ? free : free / 4 * 3);
    return *plan;
}

TEST(Connect, MemoryFollowsTheData)
{
    constexpr auto plenty = std::uint64_t{1} << 36;
    for (std::int64_t const block : {64, 1024, 4096})
        for (int const nodes : {4, 16, 64, 128}) {
            auto const plan = by_default(nodes, 4096, block, plenty);
            for (auto const* const route : {&plan.write, &plan.read}) {
                EXPECT_LE(all_shared(*route, equal_nodes(nodes, 1)), 610'000U)
                    << nodes << " nodes, blocks of " << block;
                EXPECT_LE(route->aggregators, std::max(1, nodes / 16));
                EXPECT_LE(route->buffers, 3);
            }
        }
    auto const many = by_default(128, 4096, 1024, plenty, {}, 16);
    for (auto const* const route : {&many.write, &many.read})
        EXPECT_LE(all_shared(*route, equal_nodes(128, 16)), 850'000U) << "16 ranks a node";
    // With more data everything is as large as ever.
    auto const plan = by_default(16, 8 * one_MiB, 4096, plenty);
    EXPECT_EQ(plan.write.aggregators, 16);
    EXPECT_EQ(plan.write.round_bytes, 2U * one_MiB);
    EXPECT_EQ(plan.write.buffers, 5) << "a partition has four rounds, and one more if it is shifted";
}

TEST(Connect, SizesAreByWhatIsFree)
{
    for (std::int64_t const block : {64, 4096, 65536})
        for (std::uint64_t const free : {64U, 16U, 4U}) {
            auto const plan = by_default(8, 8 * one_MiB, block, free * one_MiB);
            EXPECT_EQ(plan.write.aggregators, 8);
        }
}

/// What nobody asked for leaves a quarter to others; what somebody asked for is refused only if it does not fit.
TEST(Connect, SizesThatWereAskedForMayTakeAllThatIsFree)
{
    auto const options = across_nodes(4, one_MiB, "p2p");
    auto const nodes = equal_nodes(4, 1);
    auto const plenty = by_default(4, 8 * one_MiB, 4096, std::uint64_t{1} << 36, options);
    auto const needed = std::max(all_shared(plenty.write, nodes), all_shared(plenty.read, nodes));
    auto const tight = by_default(4, 8 * one_MiB, 4096, needed + 4096, options);
    for (auto const& [route, as] : {std::pair(&tight.write, &plenty.write), std::pair(&tight.read, &plenty.read)}) {
        EXPECT_EQ(route->round_bytes, as->round_bytes);
        EXPECT_EQ(route->buffers, as->buffers);
        EXPECT_EQ(route->network.slot_bytes, as->network.slot_bytes);
    }
}

/// A rank has a whole round on its way for each of its layers, and so has every rank where ranks overlap.
TEST(Connect, OverlappingWritesAreCountedForEveryLayer)
{
    Job job;
    for (int r = 0; r < 8; ++r) {
        Pattern pattern;
        pattern.add(std::vector<Extent>(10, {0, 100'000}));
        job.pattern.add(pattern::summarise(tapioca::pattern::variables_of(pattern)));
    }
    job.ranks = job.nodes = 8;
    Route route;
    route.way = Way::aggregated;
    route.aggregators = 1;
    route.buffers = 2;
    route.round_bytes = 65536;
    EXPECT_GE(private_bytes(job, route, false), 9U * 10 * 65536);
}

TEST(Connect, WhoHasWhatTakesRoomByTheNodesNotByTheirSquare)
{
    constexpr int nodes = 600;
    Options options;
    options.nbaggr = nodes;
    auto const plan = by_default(nodes, one_MiB, 64, std::uint64_t{1} << 36, options);
    EXPECT_EQ(plan.write.aggregators, nodes);
    EXPECT_LE(plan.write.network.feeds.size(), 4U * nodes);
    EXPECT_LE(plan.read.network.feeds.size(), 4U * nodes);
}

TEST(Connect, RmaTakesTwoBuffersAtLeast)
{
    for (auto const* const transport : {"p2p", "rma"}) {
        auto options = across_nodes(2, 65536, transport);
        options.buffers = 1;
        auto const plan = connected(in_turn(4, 4096, 256), {{0, 1}, {2, 3}}, options);
        bool const rma = transport == std::string("rma");
        EXPECT_EQ(plan.write.buffers, rma ? 2 : 1);
        EXPECT_EQ(plan.write.network.transport, rma ? Transport::rma : Transport::p2p);
        auto const& notes = plan.write.notes;
        EXPECT_EQ(std::count(notes.begin(), notes.end(), "rma takes two buffers at least"), rma ? 1 : 0);
    }
}

TEST(Connect, RmaIsNotForFilesThatAreMostlyHoles)
{
    auto ranks = in_blocks(4, one_MiB);
    ranks[3][0].offset = std::int64_t{1} << 42;
    for (int const aggregators : {1, 2}) {
        auto const plan = connected(ranks, {{0, 1}, {2, 3}}, across_nodes(aggregators, 65536, "rma"));
        EXPECT_EQ(plan.write.network.transport, Transport::p2p);
        EXPECT_NE(explain(plan, {}).find("most rounds have no data"), std::string::npos);
    }
    auto const dense = connected(in_blocks(4, one_MiB), {{0, 1}, {2, 3}}, across_nodes(1, 4096, "rma"));
    EXPECT_EQ(dense.write.network.transport, Transport::rma);
}

TEST(Connect, GoesDirectWhereTheNetworkIsSlowerThanTheFileSystem)
{
    // Pieces that fill blocks, half of which would have to cross.
    auto const data = in_turn(4, 25 * 4096, 80);
    NodeRanks const nodes = {{0, 1}, {2, 3}};
    for (auto const& [bandwidth, way] : {std::pair(100e9, Way::aggregated), std::pair(1e6, Way::direct)}) {
        Options options;
        options.nbaggr = 2;
        auto plan = unconnected(data, 2, options);
        auto machine = *plan.job.machine;
        machine.topology = machine::make_flat(2, {"link", 1e-6, bandwidth});
        plan.job.machine = std::make_shared<machine::Machine const>(machine);
        ASSERT_EQ(plan.write.way, Way::aggregated);
        auto const before = plan.write.aggregated_s;
        connect(plan, nodes, asking(data, nodes));
        EXPECT_EQ(plan.write.way, way) << bandwidth;
        EXPECT_EQ(plan.write.aggregated_s > before, way == Way::direct) << "the prediction knows the network";
    }
}

TEST(Connect, GoesDirectWithPiecesSmallerThanStripesOnlyIfTheirLocksCostLessThanTheNetwork)
{
    // 320 pieces of 100 KiB. Each makes a stripe of 1 MiB be stored and read: 671 MB at 2.4 GB/s are 280 ms. Gathered,
    // each node gets 8 MB.
    auto const data = in_turn(4, 25 * 4096, 80);
    NodeRanks const nodes = {{0, 1}, {2, 3}};
    struct Case {
        std::int64_t stripe;
        double bandwidth;
        Way way;
    };
    for (auto const& [stripe, bandwidth, way] :
         {Case{0, 100e6, Way::direct}, Case{one_MiB, 100e6, Way::aggregated}, Case{one_MiB, 20e6, Way::direct}}) {
        Options options;
        options.nbaggr = 2;
        auto job = unconnected(data, 2, options).job;
        job.storage.stripe_bytes = stripe;
        job.storage.stripe_count = stripe > 0 ? 4 : 0;
        auto machine = *job.machine;
        machine.topology = machine::make_flat(2, {"link", 1e-6, bandwidth});
        job.machine = std::make_shared<machine::Machine const>(machine);
        auto plan = make(job, {});
        ASSERT_TRUE(plan);
        connect(*plan, nodes, asking(data, nodes));
        EXPECT_EQ(plan->write.way, way) << stripe << ' ' << bandwidth;
        EXPECT_EQ(plan->write.reason, Reason::fastest);
        EXPECT_EQ(plan->write.direct_s < plan->write.aggregated_s, way == Way::direct);
    }
}

TEST(Connect, RefusedWindowsGiveMessages)
{
    auto plan = connected(in_turn(4, 4096, 256), {{0, 1}, {2, 3}}, across_nodes(2, 65536, "rma"));
    refuse_rma(plan, "no window today");
    for (auto const* const route : {&plan.write, &plan.read}) {
        EXPECT_EQ(route->network.transport, Transport::p2p);
        EXPECT_EQ(route->notes.back(), "p2p instead of rma: no window today");
    }
    auto const notes = plan.write.notes;
    refuse_rma(plan, "again");
    EXPECT_EQ(plan.write.notes, notes) << "once";
}

TEST(Connect, DirectAccessAndASingleNodeNeedNoElection)
{
    auto options = across_nodes(2, 65536);
    options.direct = Direct::always;
    for (auto const& plan : {unconnected(in_blocks(4, one_MiB), 2, options),
                             unconnected(in_blocks(4, one_MiB), 1, across_nodes(2, 65536))})
        EXPECT_FALSE(wants_election(plan.job, plan.write) || wants_election(plan.job, plan.read));
}

}  // namespace
}  // namespace tapioca::plan
