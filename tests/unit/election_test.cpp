// The election: close to the optimum, fair, and independent of how the bids are collected.
#include "plan/election.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "support/machines.hpp"

namespace tapioca::plan {
namespace {

/// A machine with a pattern, of which the election points to the machine.
struct Scene {
    machine::Machine machine;
    Election election;
};

std::unique_ptr<Scene> random_scene(std::mt19937_64& random, int most_nodes, std::size_t most_partitions)
{
    auto scene = std::make_unique<Scene>();
    scene->machine = test::random_machine(random, most_nodes);
    auto& election = scene->election;
    election.machine = &scene->machine;
    auto const nodes = scene->machine.topology->nodes();
    election.where.resize(static_cast<std::size_t>(nodes));
    std::iota(election.where.begin(), election.where.end(), 0);
    if (random() % 2 == 0) std::shuffle(election.where.begin(), election.where.end(), random);
    auto const per_node = 1 + static_cast<int>(random() % 8);
    election.aggregator_places.assign(static_cast<std::size_t>(nodes), per_node);
    election.needed_bytes = 1 << 20;
    election.free_bytes = {{1ULL << 36}};
    election.strategy = strategy_named(random() % 2 == 0 ? "TOPOLOGY_AWARE" : "CONTENTION_AWARE");
    auto const most = std::min(most_partitions, static_cast<std::size_t>(nodes * per_node));
    election.partitions.resize(1 + random() % most);
    auto const kind = random() % 4;  // blocks, few producers, all alike, anything
    for (std::size_t p = 0; p < election.partitions.size(); ++p) {
        auto& partition = election.partitions[p];
        auto const center = static_cast<int>(p * static_cast<std::size_t>(nodes) / election.partitions.size());
        for (int node = 0; node < nodes; ++node) {
            double bytes = 0;
            if (kind == 0) bytes = std::abs(node - center) < 3 ? static_cast<double>(random() % 10'000'000) : 0;
            if (kind == 1) bytes = random() % static_cast<std::uint64_t>(nodes) < 3 ? 5e6 : 0;
            if (kind == 2) bytes = 1e6;
            if (kind == 3) bytes = static_cast<double>(random() % 10'000'000);
            if (bytes > 0) partition.sources.push_back({node, bytes});
            partition.bytes += bytes;
        }
        partition.rounds = std::max(1.0, partition.bytes / 4e6);
    }
    return scene;
}

/// The least total there is: partitions to slots of nodes by shortest augmenting paths (Hungarian method).
double least_total(Election const& election)
{
    auto const partitions = election.partitions.size();
    auto const model = election.costs();
    auto const most_slots = [&](int node) {
        return std::min(static_cast<std::size_t>(election.fit_on(node)), partitions);
    };
    std::vector<std::vector<double>> cost;  // [partition][slot]
    for (std::size_t p = 0; p < partitions; ++p) {
        std::vector<double> row;
        for (int node = 0; node < static_cast<int>(election.where.size()); ++node) {
            // A node's first slots are on its best tier, as many as fit there, the next on the second best.
            std::vector<std::pair<double, std::uint64_t>> tiers;
            auto const& [sources, bytes, rounds] = election.partitions[p];
            for (std::size_t tier = 0; tier < election.machine->tiers.size(); ++tier)
                tiers.emplace_back(
                    model.cost(sources, election.where[static_cast<std::size_t>(node)], tier, rounds).total_s,
                    election.fit_on(node, tier));
            std::sort(tiers.begin(), tiers.end());
            std::size_t slot = 0;
            for (auto const& [seconds, fit] : tiers)
                for (std::uint64_t i = 0; i < fit && slot < most_slots(node); ++i)
                    row.push_back(seconds * election.strategy->surcharge(slot++));
        }
        cost.push_back(std::move(row));
    }
    auto const slots = cost[0].size();
    constexpr double infinite = std::numeric_limits<double>::infinity();
    std::vector<double> u(partitions + 1, 0);
    std::vector<double> v(slots + 1, 0);
    std::vector<std::size_t> owner(slots + 1, 0);
    for (std::size_t p = 1; p <= partitions; ++p) {
        owner[0] = p;
        std::size_t at = 0;
        std::vector<double> least(slots + 1, infinite);
        std::vector<bool> used(slots + 1, false);
        std::vector<std::size_t> way(slots + 1, 0);
        do {
            used[at] = true;
            std::size_t next = 0;
            double delta = infinite;
            for (std::size_t s = 1; s <= slots; ++s) {
                if (used[s]) continue;
                auto const reduced = cost[owner[at] - 1][s - 1] - u[owner[at]] - v[s];
                if (reduced < least[s]) {
                    least[s] = reduced;
                    way[s] = at;
                }
                if (least[s] < delta) {
                    delta = least[s];
                    next = s;
                }
            }
            for (std::size_t s = 0; s <= slots; ++s)
                if (used[s]) {
                    u[owner[s]] += delta;
                    v[s] -= delta;
                } else {
                    least[s] -= delta;
                }
            at = next;
        } while (owner[at] != 0);
        while (at != 0) {
            owner[at] = owner[way[at]];
            at = way[at];
        }
    }
    double total = 0;
    for (std::size_t s = 1; s <= slots; ++s)
        if (owner[s] != 0) total += cost[owner[s] - 1][s - 1];
    return total;
}

/// A second tier of another speed, and little room on both.
void add_scarce_tier(std::mt19937_64& random, Scene& scene)
{
    auto const speed = std::array{0.5e9, 5e9, 100e9}[random() % 3];
    scene.machine.tiers.push_back(test::tier("other", "ssd", 10e-6, speed, 1e12));
    auto& election = scene.election;
    election.free_bytes.clear();
    for (std::size_t node = 0; node < election.where.size(); ++node)
        election.free_bytes.push_back({(random() % 3) << 20, 8U << 20});
}

void expect_close_to_cheapest(bool scarce)
{
    std::mt19937_64 random(200);
    double sum = 0;
    double worst = 0;
    int const trials = scarce ? 100 : 200;
    for (int trial = 0; trial < trials; ++trial) {
        auto const scene = random_scene(random, 64, 48);
        if (scarce) add_scarce_tier(random, *scene);
        auto const aggregator_places = assign(scene->election, all_bids(scene->election));
        ASSERT_TRUE(aggregator_places) << aggregator_places.error().text;
        auto const excess = total_score(scene->election, *aggregator_places) / least_total(scene->election) - 1;
        if (!scarce) {
            ASSERT_GE(excess, -1e-9) << "cheaper than the cheapest";
        }
        sum += excess;
        worst = std::max(worst, excess);
    }
    std::printf("placement%s: %.2f %% above the cheapest on average, %.2f %% at worst, of %d\n",
                scarce ? " on scarce tiers" : "", 100 * sum / trials, worst * 100, trials);
    EXPECT_LE(sum / trials, 0.05);
    EXPECT_LE(worst, 0.15);
}

TEST(Election, IsCloseToTheCheapestAssignmentOn200RandomMachines)
{
    expect_close_to_cheapest(false);
}

TEST(Election, IsCloseToTheCheapestAssignmentAlsoOnScarceTiers)
{
    expect_close_to_cheapest(true);
}

TEST(Election, GivesNoNodeASecondAggregatorWhileAnotherWithinFivePercentHasNone)
{
    std::mt19937_64 random(5);
    int seconds = 0;
    for (int trial = 0; trial < 120; ++trial) {
        auto const scene = random_scene(random, 100, 120);
        auto const& election = scene->election;
        auto const aggregator_places = assign(election, all_bids(election));
        ASSERT_TRUE(aggregator_places);
        std::vector<int> count(election.where.size(), 0);
        for (auto const& aggregator_place : *aggregator_places)
            ++count[static_cast<std::size_t>(aggregator_place.node)];
        for (std::size_t node = 0; node < count.size(); ++node)
            EXPECT_LE(count[node], election.fit_on(static_cast<int>(node)));
        for (std::size_t p = 0; p < aggregator_places->size(); ++p) {
            auto const& aggregator_place = (*aggregator_places)[p];
            if (count[static_cast<std::size_t>(aggregator_place.node)] < 2) continue;
            ++seconds;
            for (auto const& bid : offers(election, p))
                ASSERT_FALSE(count[static_cast<std::size_t>(bid.node)] == 0 &&
                             bid.score < 1.05 * aggregator_place.score)
                    << "partition " << p << " on node " << aggregator_place.node << ", node " << bid.node
                    << " has none";
        }
    }
    EXPECT_GT(seconds, 100) << "else this shows nothing";
}

TEST(Election, IsTheSameWhoeverCollectsTheBidsInWhateverOrder)
{
    std::mt19937_64 random(6);
    for (int trial = 0; trial < 100; ++trial) {
        auto const scene = random_scene(random, 48, 32);
        auto const& election = scene->election;
        std::vector<int> order(election.where.size());
        std::iota(order.begin(), order.end(), 0);
        auto const collect = [&] {
            std::shuffle(order.begin(), order.end(), random);
            auto bids = no_bids(election);
            auto const kept = bids_kept(election);
            for (int const node : order) {
                auto const own = bids_of(election, node);
                for (std::size_t at = 0; at < bids.size(); at += kept)
                    merge(std::span(bids).subspan(at, kept), std::span(own).subspan(at, kept));
            }
            return bids;
        };
        auto const once = collect();
        auto const again = collect();
        auto const all = all_bids(election);
        for (std::size_t i = 0; i < once.size(); ++i) {
            ASSERT_EQ(once[i].node, again[i].node);
            ASSERT_EQ(once[i].score, again[i].score);
            ASSERT_NEAR(once[i].score, all[i].score, 0.02 * all[i].score);  // lots decide between equals
        }
        auto const aggregator_places = assign(election, once);
        auto const central = assign(election, all);
        ASSERT_TRUE(aggregator_places && central);
        EXPECT_NEAR(total_score(election, *aggregator_places), total_score(election, *central),
                    0.05 * total_score(election, *central));
    }
}

/// Eight nodes on two switches, three quarters of everything on the second.
std::unique_ptr<Scene> two_switches(std::size_t partitions)
{
    auto scene = std::make_unique<Scene>();
    scene->machine.topology = machine::make_fat_tree({{0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}},
                                                     {{"host", 50e-6, 125e6}, {"trunk", 50e-6, 25e6}});
    scene->machine.tiers = {test::tier("dram", "dram", 100e-9, 10e9, 1e12)};
    auto& election = scene->election;
    election.machine = &scene->machine;
    election.where = {0, 1, 2, 3, 4, 5, 6, 7};
    election.aggregator_places.assign(8, 2);
    election.needed_bytes = 1 << 20;
    election.free_bytes = {{1ULL << 36}};
    for (std::size_t p = 0; p < partitions; ++p) {
        election.partitions.emplace_back();
        for (int node = 0; node < 8; ++node) election.partitions.back().sources.push_back({node, node < 4 ? 1e6 : 3e6});
        election.partitions.back().bytes = 16e6;
        election.partitions.back().rounds = 4;
    }
    return scene;
}

TEST(Election, ByTopologyPutsAggregatorsWhereMostDataIsAndByRankOrderOnTheFirstNodes)
{
    auto const scene = two_switches(4);
    auto& election = scene->election;
    for (auto const* const strategy : {"TOPOLOGY_AWARE", "CONTENTION_AWARE"}) {
        election.strategy = strategy_named(strategy);
        auto const aggregator_places = assign(election, all_bids(election));
        ASSERT_TRUE(aggregator_places);
        std::vector<int> nodes;
        for (auto const& aggregator_place : *aggregator_places) nodes.push_back(aggregator_place.node);
        std::sort(nodes.begin(), nodes.end());
        EXPECT_EQ(nodes, (std::vector<int>{4, 5, 6, 7})) << strategy;
    }
    election.strategy = strategy_named("RANK_ORDER");
    auto const aggregator_places = assign(election, all_bids(election));
    ASSERT_TRUE(aggregator_places);
    for (std::size_t p = 0; p < 4; ++p) EXPECT_EQ((*aggregator_places)[p].node, static_cast<int>(p));
}

TEST(Election, ByRankOrderGoesRoundAgainWhenAllNodesHaveOne)
{
    auto const scene = two_switches(11);
    scene->election.strategy = strategy_named("RANK_ORDER");
    auto const aggregator_places = assign(scene->election, all_bids(scene->election));
    ASSERT_TRUE(aggregator_places);
    for (std::size_t p = 0; p < 11; ++p) EXPECT_EQ((*aggregator_places)[p].node, static_cast<int>(p % 8));
}

TEST(Election, ByPathTakesTheNodesNearestToTheFileOrFarthestFromIt)
{
    auto const scene = two_switches(2);
    auto& election = scene->election;
    scene->machine.gateways.hops = {3, 1, 4, 4, 5, 1, 9, 6};
    scene->machine.gateways.link = {"storage", 1e-6, 1e9};
    auto const nodes = [&](char const* strategy) {
        election.strategy = strategy_named(strategy);
        auto const aggregator_places = assign(election, all_bids(election));
        EXPECT_TRUE(aggregator_places);
        std::vector<int> list{(*aggregator_places)[0].node, (*aggregator_places)[1].node};
        std::sort(list.begin(), list.end());
        return list;
    };
    EXPECT_EQ(nodes("SHORTEST_PATH"), (std::vector<int>{1, 5}));
    EXPECT_EQ(nodes("LONGEST_PATH"), (std::vector<int>{6, 7}));
}

TEST(Election, TakesTheNextTierForThoseThatNoLongerFit)
{
    auto const scene = two_switches(4);
    auto& election = scene->election;
    scene->machine.tiers.insert(scene->machine.tiers.begin(), test::tier("hbm", "numa", 50e-9, 20e9, 1e12));
    election.where = {0};
    election.aggregator_places = {4};
    election.free_bytes = {{3U << 20, 1ULL << 30}};  // three of four fit the first
    for (auto& partition : election.partitions) partition.sources = {{0, 1e6}};
    auto const aggregator_places = assign(election, all_bids(election));
    ASSERT_TRUE(aggregator_places) << aggregator_places.error().text;
    std::vector<int> on_tier(2, 0);
    for (auto const& aggregator_place : *aggregator_places) ++on_tier[aggregator_place.tier];
    EXPECT_EQ(on_tier, (std::vector<int>{3, 1}));
    EXPECT_EQ(notes_on(election, *aggregator_places),
              std::vector<std::string>{"hbm would be faster, but has room for 3 only: dram instead"});
}

TEST(Election, GoesToAnotherNodeRatherThanToASlowTierOfItsOwn)
{
    Scene scene;
    scene.machine.topology = machine::make_flat(4, {"link", 1e-6, 30e9});
    scene.machine.tiers = {test::tier("hbm", "numa", 50e-9, 100e9, 1e12),
                           test::tier("ssd", "ssd", 100e-6, 0.5e9, 1e12)};
    auto& election = scene.election;
    election.machine = &scene.machine;
    election.where = {0, 1, 2, 3};
    election.aggregator_places.assign(4, 2);
    election.needed_bytes = 1 << 20;
    election.free_bytes = {{1U << 20, 1ULL << 30}};  // one fits the fast tier
    election.partitions.assign(2, {{{0, 1e9}}, 1e9, 10});
    for (auto const* const strategy : {"TOPOLOGY_AWARE", "CONTENTION_AWARE"}) {
        election.strategy = strategy_named(strategy);
        auto const aggregator_places = assign(election, all_bids(election));
        ASSERT_TRUE(aggregator_places) << aggregator_places.error().text;
        EXPECT_EQ((*aggregator_places)[0].tier + (*aggregator_places)[1].tier, 0U) << "both on fast memory";
        EXPECT_NE((*aggregator_places)[0].node, (*aggregator_places)[1].node);
        EXPECT_TRUE((*aggregator_places)[0].node == 0 || (*aggregator_places)[1].node == 0) << "one where the data is";
    }
}

TEST(Election, WithPersistencyOnlyTiersCountThatKeepTheData)
{
    auto const scene = two_switches(1);
    auto& election = scene->election;
    scene->machine.tiers.push_back(test::tier("ssd", "ssd", 100e-6, 1e9, 1e12, Persistency::job));
    election.free_bytes = {{1ULL << 36, 1ULL << 36}};
    election.persistency = Persistency::job;
    auto const aggregator_places = assign(election, all_bids(election));
    ASSERT_TRUE(aggregator_places);
    EXPECT_EQ((*aggregator_places)[0].tier, 1U);
    election.persistency = Persistency::permanent;
    auto const none = assign(election, all_bids(election));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Errc::setting);
    EXPECT_NE(none.error().text.find("TAPIOCA_PERSISTENCY=permanent"), std::string::npos) << none.error().text;
}

}  // namespace
}  // namespace tapioca::plan
