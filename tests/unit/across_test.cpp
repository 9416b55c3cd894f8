// Predictions for several nodes: recomputed by hand, rank by rank, node by node, gateway by gateway; and the number of
// aggregators that follows from them.
#include "plan/predict_across_nodes.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "plan/second_level.hpp"
#include "planner.hpp"

namespace tapioca::plan {
namespace {

constexpr double MiB = 1024 * 1024;
constexpr double block = 8 * MiB;     // of mira and cooley, and theta's stripe
constexpr double particle = 950'000;  // bytes of a rank with 25,000 particles, in 9 pieces

machine::Machine shipped(std::string const& name)
{
    auto const file = machine::read_platform(name);
    EXPECT_TRUE(file) << file.error().text;
    auto machine = machine::parse_platform(file->text, file->path);
    EXPECT_TRUE(machine) << machine.error().text;
    return std::move(*machine);
}

/// Eight hosts on links of 1 Gbit/s, and a file system of which nothing but the kind is known.
machine::Machine eight_hosts(char const* file_system)
{
    auto machine =
        machine::parse_platform(fmt::format("[node]\ncores = 4\n[topology]\nkind = \"flat\"\nnodes = 8\n"
                                            "[[topology.level]]\nlatency = \"50us\"\nbandwidth = \"1Gbit/s\"\n"
                                            "[[tier]]\nname = \"dram\"\nlatency = \"100ns\"\n"
                                            "bandwidth = \"10GB/s\"\ncapacity = \"64GiB\"\n"
                                            "[storage]\ntype = \"{}\"\n",
                                            file_system),
                                "eight.toml");
    EXPECT_TRUE(machine) << machine.error().text;
    return std::move(*machine);
}

/// A plan, and what was predicted for each way of either direction.
struct Foreseen {
    Plan plan;
    Prediction write, read, write_direct, read_direct;
};

Foreseen foresee(machine::Machine const& described, int nodes, int ppn, std::string const& workload,
                 Options options = {})
{
    auto work = workloads::from_text(workload, nodes * ppn);
    EXPECT_TRUE(work) << work.error().text;
    auto const machine = std::make_shared<machine::Machine const>(described);
    tools::Planner const planner(machine, nodes, ppn, *machine->storage, std::move(*work));
    options.direct = Direct::never;
    auto plan = planner.plan(options);
    EXPECT_TRUE(plan) << plan.error().text;
    auto const write_weights = planner.weigh(plan->write.cuts, plan->write.unit);
    auto const read_weights = planner.weigh(plan->read.cuts, plan->read.unit);
    auto const& job = plan->job;
    return {*plan, predict_aggregated(job, placed_flow(job, plan->write, write_weights), false),
            predict_aggregated(job, placed_flow(job, plan->read, read_weights), true),
            predict_direct(job, direct_flow(job, write_weights), false),
            predict_direct(job, direct_flow(job, read_weights), true)};
}

void same(double predicted, double by_hand, char const* what)
{
    EXPECT_NEAR(predicted, by_hand, 1e-6 * by_hand) << what;
}

TEST(ByHand, OnePsetOfMira)
{
    // 128 x 16 ranks with 950,000 B are 1,945,600,000 B in 231.9 blocks of 8 MiB; 16 aggregators, of which some
    // have 15.
    auto const seen = foresee(shipped("mira"), 128, 16, "hacc:25000,aos");
    EXPECT_EQ(seen.plan.write.aggregators, 16);
    auto const all = 128 * 16 * particle;
    same(seen.write.gateways_s, all / 2.8e9, "1: all through one I/O node of 2.8 GB/s, not two links of 1.8");
    same(seen.write.storage_s, 15 * block / 175e6, "2: the longest partition, by one writer");
    same(seen.write.copies_s, particle / 4e9 + 9 * 8e-9, "3: a rank's own copies: 16 ranks have 16 cores");
    same(seen.write.total(), 60e-6 + 15 * block / 175e6, "4: they overlap, but for the start");
    same(seen.read.total(), 20e-6 + particle / 4e9 + 9 * 8e-9 + 15 * block / 175e6, "5: reading, copies come after");
    // Each of the 18,432 pieces shares a block with another: 16 MiB more for each.
    same(seen.write_direct.gateways_s, (all + 18'432 * 2 * block) / 2.8e9, "6: direct, parts of blocks go to and fro");
    same(seen.read_direct.gateways_s, (all + 18'432 * block) / 2.8e9, "7: a reader moves them once");
    EXPECT_GT(all / 2.8e9, all / 3.6e9) << "nothing passes two bridges faster than they are";
    EXPECT_GE(seen.write.total(), all / 3.6e9);
}

TEST(ByHand, EightPsetsOfMira)
{
    auto const seen = foresee(shipped("mira"), 1024, 16, "hacc:25000,aos");
    EXPECT_EQ(seen.plan.write.aggregators, 128);
    EXPECT_EQ(seen.write.passage.used, 16);
    // 1,855.5 blocks: a Pset has 232 of them.
    same(seen.write.gateways_s, 232 * block / 2.8e9, "8: the sub-allocation has eight I/O nodes, 22.4 GB/s");
    // The farthest node of a Pset is 7 links from its bridge, and 1 us a link.
    auto const& hops = seen.plan.job.machine->gateways.hops;
    auto const most = *std::max_element(hops.begin(), hops.end());
    same(seen.write_direct.ranks_s, 9 * (200e-6 + most * 1e-6), "9: nine calls, each to the file system and its lock");

    Options options;
    options.strategy = "RANK_ORDER";
    auto const first = foresee(shipped("mira"), 1024, 16, "hacc:25000,aos", options);
    same(first.write.gateways_s, 1024 * 16 * particle / 2.8e9, "10: 128 nodes in a row are one Pset: 5.6 s");
    EXPECT_EQ(first.write.passage.used, 2);
}

TEST(ByHand, AllOfMira)
{
    auto const seen = foresee(shipped("mira"), 4096, 16, "interleaved:4K,1M");
    EXPECT_EQ(seen.plan.write.aggregators, 512);
    auto const all = 4096 * 16 * MiB;
    same(seen.write.gateways_s, all / 32 / 2.8e9, "11: 32 Psets, and every one has 16 of the aggregators");
    same(seen.read.storage_s, all / 512 / 175e6, "12: reads grow with the machine, too");
}

TEST(ByHand, ThetaHasTheShareOfItsNodes)
{
    auto const half = foresee(shipped("theta"), 512, 16, "interleaved:4K,3M");
    EXPECT_EQ(half.plan.write.aggregators, 96);
    // 3,072 stripes are 32 for each, and one more for some, so that they begin on different servers.
    same(half.write.storage_s, 33 * block / 0.11e9, "13: two writers for each of 48 servers");
    same(half.read.storage_s, 33 * block / 0.375e9, "14: and as many readers: not one node's 8 GB/s");
    auto const twice = foresee(shipped("theta"), 1024, 16, "interleaved:4K,3M");
    EXPECT_EQ(twice.plan.write.aggregators, 192);
    same(twice.write.storage_s, 33 * block / 0.11e9, "15: twice the nodes, twice the data, twice the writers");
    // 136 ranks on a node's 68 cores take turns; those of other nodes do not.
    auto const crowded = foresee(shipped("theta"), 64, 136, "interleaved:4K,3M");
    same(crowded.write.copies_s, 2 * (3 * MiB / 4e9 + 768 * 8e-9), "16: a rank's copies, at half of a core");
}

TEST(ByHand, OneGatewayOfAFatTree)
{
    auto const seen = foresee(shipped("fat-tree"), 128, 16, "hacc:25000,soa");
    same(seen.write.gateways_s, 128 * 16 * particle / 12.5e9, "17: the first 128 nodes have one gateway of 100 Gbit/s");
    // 18,432 pieces, none of which begins on a stripe of 1 MiB.
    same(seen.write_direct.gateways_s, (128 * 16 * particle + 18'432 * 2 * MiB) / 12.5e9, "18: direct, with the locks");
}

TEST(ByHand, HostsOnSlowLinks)
{
    // 8 ranks of 16 MiB in blocks of 4 KiB: each host gathers 16 MiB, of which it has 2 MiB itself.
    auto const local = foresee(eight_hosts("tmpfs"), 8, 1, "interleaved:4K,16M");
    EXPECT_EQ(local.plan.write.aggregators, 8);
    auto const c1 = 14 * MiB / 125e6 + 16 * MiB / 10e9 + 16 * (7 * 2 * 50e-6 + 100e-9);  // 16 rounds of 1 MiB
    auto const c2 = 16 * MiB / 10e9;
    same(local.write.links_s, c1 + c2 / 16,
         "19: links, then memory; two hops a message; one round before the first write");
    same(local.write_direct.total(), 8 * 4096 * 1e-6 + 8 * 16 * MiB / 2.4e9, "20: one kernel, one lock, 32,768 calls");
    // A file system of which nobody knows what all nodes get together: what each gets.
    auto const remote = foresee(eight_hosts("nfs"), 8, 2, "interleaved:4K,16M");
    EXPECT_EQ(remote.plan.write.aggregators, 8);
    same(remote.write.storage_s, 32 * MiB / 4.5e9, "21: one writer a node");
    same(remote.write_direct.storage_s, 32 * MiB / 3.3e9, "22: two writers a node, blocks of 4 KiB are nobody else's");
}

TEST(ByHand, TwoSwitchesShareATrunk)
{
    auto const hosts = [](char const* links) {
        auto machine = machine::parse_platform(
            fmt::format("[node]\ncores = 4\n[topology]\nkind = \"fat_tree\"\narity = [4, 2]\n"
                        "[[topology.level]]\nlatency = \"50us\"\nbandwidth = \"1Gbit/s\"\n"
                        "[[topology.level]]\nlatency = \"50us\"\nbandwidth = \"200Mbit/s\"\n{}"
                        "[[tier]]\nname = \"dram\"\nlatency = \"100ns\"\nbandwidth = \"10GB/s\"\ncapacity = \"64GiB\"\n"
                        "[storage]\ntype = \"tmpfs\"\n",
                        links),
            "two.toml");
        EXPECT_TRUE(machine) << machine.error().text;
        return std::move(*machine);
    };
    Options options;
    options.nbaggr = 4;
    options.strategy = "RANK_ORDER";  // all on the first switch
    // Every node has 1/8 of every partition: of 128 MiB, half comes over the trunk of 25 MB/s.
    auto const shared = foresee(hosts("links = 1\n"), 8, 1, "interleaved:4K,16M", options);
    auto const many = foresee(hosts(""), 8, 1, "interleaved:4K,16M", options);
    same(shared.write.links_s, 64 * MiB / 25e6, "23: the trunk that a switch's nodes share");
    same(shared.read.links_s, 64 * MiB / 25e6, "24: and the other way");
    EXPECT_LT(many.write.links_s, shared.write.links_s) << "as many links as the nodes need";
}

/// Eight hosts behind two switches; `trunk` describes the link between these.
core::Result<machine::Machine> two_switches(std::string const& trunk = {})
{
    return machine::parse_platform(
        "[node]\ncores = 4\n[topology]\nkind = \"fat_tree\"\narity = [4, 2]\n"
        "[[topology.level]]\nlatency = \"50us\"\nbandwidth = \"1Gbit/s\"\n"
        "[[topology.level]]\nlatency = \"50us\"\nbandwidth = \"1Gbit/s\"\n" +
            trunk +
            "[[tier]]\nname = \"dram\"\nlatency = \"100ns\"\nbandwidth = \"10GB/s\"\ncapacity = \"64GiB\"\n"
            "[storage]\ntype = \"tmpfs\"\n",
        "two.toml");
}

TEST(SecondLevel, SavesMessagesAndTakesAnotherHop)
{
    auto const machine = two_switches();
    ASSERT_TRUE(machine) << machine.error().text;
    Options options;
    options.strategy = "RANK_ORDER";  // all on the first switch
    options.buffersize = 1024 * 1024;
    auto const level = [&](int aggregators, char const* workload) {
        options.nbaggr = aggregators;
        auto const found = second_level(foresee(*machine, 8, 1, workload, options).plan);
        EXPECT_TRUE(found) << workload;
        return found.value_or(SecondLevel());
    };
    // Every node has 4 MiB of each of four partitions of 32 rounds. From the other switch, an aggregator gets one
    // message a round instead of four, of 200 us each.
    auto const four = level(4, "interleaved:4K,16M");
    EXPECT_EQ(four.groups, 2);
    EXPECT_EQ(four.nodes, 4);
    same(four.links_s - four.two_levels_s, 32 * 3 * 200e-6, "less for the link of an aggregator");
    EXPECT_TRUE(four.pays()) << "the file system is faster than these links";
    // Each node of the other switch gets the fourth part of what three of them send: four partitions, 8 rounds, 1 MiB;
    // and that takes longer than the aggregator's three messages a round are worth.
    options.strategy = "CONTENTION_AWARE";
    EXPECT_GE(level(8, "interleaved:4K,16M").two_levels_s, level(8, "interleaved:4K,16M").links_s);
}

TEST(SecondLevel, TakesNoBytesOffALinkThatNodesShare)
{
    auto const machine = two_switches("links = 1\n");
    ASSERT_TRUE(machine) << machine.error().text;
    Options options;
    options.strategy = "RANK_ORDER";
    options.buffersize = 64 * 1024;
    options.nbaggr = 4;
    auto const found = second_level(foresee(*machine, 8, 1, "interleaved:4K,16M", options).plan);
    ASSERT_TRUE(found);
    EXPECT_GE(found->two_levels_s, 64.0 * 1024 * 1024 / 125e6) << "what crosses the trunk";
}

TEST(SecondLevel, IsForGroupsOfNodes)
{
    EXPECT_FALSE(second_level(foresee(eight_hosts("tmpfs"), 8, 1, "interleaved:4K,16M").plan)) << "one switch";
    EXPECT_FALSE(second_level(foresee(shipped("mira"), 128, 16, "interleaved:4K,1M").plan)) << "one Pset";
    auto const theta = second_level(foresee(shipped("theta"), 2048, 16, "interleaved:4K,1M").plan);
    ASSERT_TRUE(theta);
    EXPECT_EQ(theta->groups, 6) << "of the dragonfly, and not routers with four nodes each";
    EXPECT_EQ(theta->nodes, 384);
}

/// This is why there is none (docs/model.md).
TEST(SecondLevel, DoesNotPayOnTheShippedMachines)
{
    for (auto const& [machine, nodes] : {std::pair("mira", 1024), std::pair("mira", 4096), std::pair("theta", 512),
                                         std::pair("theta", 2048), std::pair("fat-tree", 256)})
        for (auto const* const workload :
             {"hacc:25000,aos", "hacc:25000,soa", "hacc:1000,soa", "interleaved:4K,1M", "interleaved:64,16K"}) {
            auto const found = second_level(foresee(shipped(machine), nodes, 16, workload).plan);
            ASSERT_TRUE(found) << machine << ' ' << workload;
            EXPECT_FALSE(found->pays()) << machine << ' ' << nodes << ' ' << workload;
        }
}

TEST(Across, GatewaysMakeTheOrderOfTheStrategies)
{
    std::map<std::string, double> seconds;
    for (auto const* const strategy : {"RANK_ORDER", "BRIDGE_FIRST", "TOPOLOGY_AWARE", "CONTENTION_AWARE"}) {
        Options options;
        options.strategy = strategy;
        seconds[strategy] = foresee(shipped("mira"), 1024, 16, "hacc:25000,soa", options).write.total();
    }
    EXPECT_LE(seconds["CONTENTION_AWARE"], seconds["TOPOLOGY_AWARE"]);
    EXPECT_LT(seconds["TOPOLOGY_AWARE"], seconds["BRIDGE_FIRST"]);
    EXPECT_LT(seconds["BRIDGE_FIRST"], seconds["RANK_ORDER"] / 2);
}

TEST(Across, WhatIsChosenIsPredictedToBeTheFastest)
{
    std::set<Way> seen;
    for (auto const* const workload : {"hacc:65000,aos", "hacc:25000,soa", "interleaved:8M,8M", "interleaved:64K,1M"})
        for (auto const& [machine, nodes] :
             {std::pair(shipped("mira"), 1024), std::pair(shipped("theta"), 512), std::pair(shipped("cooley"), 32),
              std::pair(eight_hosts("tmpfs"), 8), std::pair(eight_hosts("nfs"), 8)}) {
            auto work = workloads::from_text(workload, nodes * 4);
            ASSERT_TRUE(work);
            tools::Planner const planner(std::make_shared<machine::Machine const>(machine), nodes, 4, *machine.storage,
                                         std::move(*work));
            auto const plan = planner.plan({});
            ASSERT_TRUE(plan) << plan.error().text;
            for (auto const* const route : {&plan->write, &plan->read}) {
                EXPECT_EQ(route->way == Way::direct, route->direct_s < route->aggregated_s)
                    << machine.name << ' ' << workload;
                EXPECT_EQ(route->reason, Reason::fastest);
                seen.insert(route->way);
            }
        }
    EXPECT_EQ(seen.size(), 2U) << "else this shows nothing";
}

TEST(Across, LargePiecesGoStraightWhereLinksAreOnlyAssumed)
{
    auto const way = [&](std::string const& workload, bool assumed, char const* file_system = "tmpfs") {
        auto machine = eight_hosts(file_system);
        machine.topology = machine.topology->with_levels({{"assumed", 1.5e-6, 12.5e9}});
        machine.links_assumed = assumed;
        tools::Planner const planner(std::make_shared<machine::Machine const>(machine), 8, 1, *machine.storage,
                                     *workloads::from_text(workload, 8));
        return planner.plan({})->write.way;
    };
    EXPECT_EQ(way("interleaved:1M,16M", true), Way::direct) << "as if by 1 Gbit/s";
    EXPECT_EQ(way("interleaved:1M,16M", false), Way::aggregated);
    EXPECT_EQ(way("interleaved:64K,16M", true), Way::direct) << "large for hosts of one machine";
    EXPECT_EQ(way("interleaved:64K,16M", true, "nfs"), Way::aggregated);
    EXPECT_EQ(way("interleaved:4K,16M", true), Way::aggregated) << "small ones lose too much";
    EXPECT_EQ(way("array1d:16M,uniform", true), Way::aggregated) << "hardly any crosses";
}

TEST(AggregatorCount, OfThePapersIsByServersAndPsets)
{
    Options options;
    options.nbaggr = AggregatorCount::paper;
    for (auto const& [machine, nodes, count] :
         {std::tuple("theta", 512, 96), std::tuple("theta", 1024, 192), std::tuple("theta", 2048, 384),
          std::tuple("mira", 1024, 128), std::tuple("mira", 128, 16)})
        EXPECT_EQ(foresee(shipped(machine), nodes, 16, "hacc:25000,aos", options).plan.write.aggregators, count)
            << machine << ' ' << nodes;
    auto const unknown = foresee(shipped("cooley"), 32, 12, "hacc:25000,aos", options).plan;
    EXPECT_EQ(unknown.write.aggregators, foresee(shipped("cooley"), 32, 12, "hacc:25000,aos").plan.write.aggregators);
    auto const& notes = unknown.write.notes;
    EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](std::string const& note) {
        return note.find("as auto: the papers' rules need the file's servers, or Psets") != std::string::npos;
    }));
}

/// The default against a quarter, half, twice and four times its number, in predicted time. (Not on the papers'
/// example, whose 30 ms a hop make a message dearer than all data: there it depends on who has data in how many
/// partitions, and that is not known when the number is chosen.)
TEST(AggregatorCount, ByDefaultIsNearTheBestOfItsNeighbours)
{
    for (auto const& [machine, nodes] :
         {std::pair("mira", 128), std::pair("mira", 512), std::pair("theta", 256), std::pair("theta", 768),
          std::pair("cooley", 32), std::pair("cooley", 126), std::pair("fat-tree", 128), std::pair("fat-tree", 512)})
        for (auto const* const workload :
             {"hacc:2000,soa", "hacc:6000,aos", "hacc:75000,soa", "hacc:600000,aos", "interleaved:4K,3M"}) {
            auto const described = shipped(machine);
            auto const chosen = foresee(described, nodes, 4, workload);
            auto const count = chosen.plan.write.aggregators;
            auto write_s = chosen.write.total();
            auto read_s = chosen.read.total();
            for (double const factor : {0.25, 0.5, 2.0, 4.0}) {
                Options options;
                options.nbaggr = std::max(1, static_cast<int>(count * factor));
                options.nbaggr_read = std::max(1, static_cast<int>(chosen.plan.read.aggregators * factor));
                auto const other = foresee(described, nodes, 4, workload, options);
                write_s = std::min(write_s, other.write.total());
                read_s = std::min(read_s, other.read.total());
            }
            EXPECT_LE(chosen.write.total(), 1.1 * write_s)
                << machine << ' ' << nodes << ' ' << workload << ' ' << count;
            EXPECT_LE(chosen.read.total(), 1.1 * read_s) << machine << ' ' << nodes << ' ' << workload << " read";
        }
}

TEST(AggregatorCount, LeavesNoAggregatorWithoutData)
{
    for (auto const& [machine, nodes] : {std::pair("cooley", 32), std::pair("theta", 64), std::pair("mira", 128)})
        for (auto const* const workload : {"hacc:25000,aos", "hacc:100,soa", "hacc:2000,soa"}) {
            auto const seen = foresee(shipped(machine), nodes, 12, workload);
            for (auto const* const route : {&seen.plan.write, &seen.plan.read}) {
                EXPECT_EQ(route->aggregator_places.size(), static_cast<std::size_t>(route->aggregators));
                for (std::size_t p = 0; p + 1 < route->cuts.size(); ++p)
                    EXPECT_LT(route->cuts[p], route->cuts[p + 1]) << machine << ' ' << workload;
            }
        }
}

TEST(Models, OfThePapersElectAmongThePartitionsOwnNodes)
{
    for (auto const* const model : {"paper-2024", "cluster-2017", "poster", "report-2017"}) {
        Options options;
        options.model = model;
        options.nbaggr = 128;
        auto const described = shipped("mira");
        auto const plan = foresee(described, 1024, 16, "hacc:25000,aos", options).plan;
        auto const& network = plan.write.network;
        for (std::size_t p = 0; p < plan.write.aggregator_places.size(); ++p) {
            bool const own = std::any_of(network.feeds.begin(), network.feeds.end(), [&](auto const& feed) {
                return feed.node == plan.write.aggregator_places[p].node && feed.begin <= p && p < feed.end;
            });
            ASSERT_TRUE(own) << model << ", partition " << p << " on node " << plan.write.aggregator_places[p].node;
        }
    }
}

TEST(Strategies, BridgeFirstTakesSoManyInEveryPset)
{
    Options options;
    options.nbaggr = 128;
    options.strategy = "BRIDGE_FIRST";
    auto const plan = foresee(shipped("mira"), 1024, 16, "hacc:25000,aos", options).plan;
    for (int pset = 0; pset < 8; ++pset) {
        std::vector<int> nodes;
        for (int k = 0; k < 16; ++k)
            nodes.push_back(plan.write.aggregator_places[static_cast<std::size_t>(16 * pset + k)].node - 128 * pset);
        EXPECT_EQ(nodes, (std::vector<int>{32, 96, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
    }
}

TEST(Tiers, OfThePapersTable10GiveWayToTheNext)
{
    auto described = shipped("theta-paper");
    Options options;
    options.model = "paper-2024";
    options.nbaggr = 96;
    options.buffers = 3;
    options.buffersize = 16 << 20;
    for (auto const* const tier : {"hbm", "dram", "ssd"}) {
        auto const plan = foresee(described, 256, 16, "array1d:40M,uniform", options).plan;
        EXPECT_EQ(plan.write.tiers(plan.job), std::vector<std::string>{tier});
        for (auto& one : described.tiers)
            if (one.name == tier) one.capacity_bytes.value = 32 * MiB;
    }
}

}  // namespace
}  // namespace tapioca::plan
