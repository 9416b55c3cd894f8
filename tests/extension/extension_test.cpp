// A tier, a topology and a strategy that the library does not have, used like its own: see CMakeLists.txt. The tier
// also passes the contract suite, which is part of this program.
#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "machine/machine.hpp"
#include "plan/plan.hpp"
#include "settings/settings.hpp"
#include "svg.hpp"

namespace tapioca {
namespace {

constexpr char const* platform = R"(name = "jewel"

[node]
cores = 4

[topology]
kind = "ring"
nodes = 6
finger = "little"

[[topology.level]]
name = "link"
latency = "1us"
bandwidth = "1GB/s"

[[tier]]
name = "dram"
kind = "dram"
latency = "100ns"
write_bandwidth = "10GB/s"
read_bandwidth = "10GB/s"
capacity = "8GiB"
persistency = "none"

[[tier]]
name = "reel"
kind = "tape"
place = "/robot"
latency = "1s"
write_bandwidth = "1GB/s"
read_bandwidth = "1GB/s"
capacity = "64GiB"
persistency = "permanent"
)";

machine::Machine jewel()
{
    auto machine = machine::parse_platform(platform, "jewel.toml");
    EXPECT_TRUE(machine) << machine.error().text;
    return machine ? *machine : machine::Machine();
}

std::string refusal(std::string const& text)
{
    auto const machine = machine::parse_platform(text, "f.toml");
    return machine ? "" : machine.error().text;
}

/// Six ranks on as many nodes of the ring write 1 MiB each.
plan::Plan planned(settings::Pairs const& hints)
{
    auto const settings = settings::resolve({}, hints, {});
    EXPECT_TRUE(settings) << settings.error().text;
    plan::Job job;
    job.options = settings->options;
    job.options.direct = Direct::never;
    job.options.nbaggr = 2;
    job.machine = std::make_shared<machine::Machine const>(jewel());
    job.nodes = job.ranks = job.machine->topology->nodes();
    job.storage = machine::storage_profile("tmpfs");
    job.free_bytes = {{std::uint64_t{1} << 33, std::uint64_t{1} << 36}};
    constexpr std::int64_t each = 1 << 20;
    plan::Nodes nodes;
    for (int rank = 0; rank < job.ranks; ++rank) {
        Pattern pattern;
        pattern.add({{rank * each, each}});
        job.pattern.add(pattern::summarise(tapioca::pattern::variables_of(pattern)));
        nodes.push_back({rank});
    }
    auto plan = plan::make(job, {});
    EXPECT_TRUE(plan) << plan.error().text;
    auto const weigh = [&](std::vector<std::int64_t> const& cuts) {
        std::vector<plan::Weight> weights;
        for (int node = 0; node < job.nodes; ++node)
            for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
                auto const bytes = std::min(cuts[p + 1], (node + 1) * each) - std::max(cuts[p], node * each);
                auto const there = static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes));
                if (there > 0) weights.push_back({node, p, p + 1, there, there});
            }
        return weights;
    };
    plan::connect(*plan, nodes, {weigh, plan::all_bids});
    EXPECT_TRUE(plan->write.feasible) << plan->write.feasible.error().text;
    return *plan;
}

std::set<int> homes(plan::Plan const& plan)
{
    std::set<int> nodes;
    for (auto const& aggregator_place : plan.write.aggregator_places) nodes.insert(aggregator_place.node);
    return nodes;
}

TEST(ATierOfOnesOwn, IsChosenByNameAndPlace)
{
    auto const here = std::filesystem::current_path().string();
    auto const tape = machine::choose_tier("tape:" + here, machine::find_tiers());
    ASSERT_TRUE(tape) << tape.error().text;
    EXPECT_EQ(tape->kind, "tape");
    EXPECT_EQ(tape->persistency, Persistency::permanent);
    EXPECT_TRUE(machine::is_device(*tape));
    EXPECT_FALSE(machine::is_ordinary(*tape));
    EXPECT_EQ(machine::shown_place(*tape), "robot " + here);
    EXPECT_TRUE(machine::make_tier(*tape));
    auto const nowhere = machine::choose_tier("tape", machine::find_tiers());
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().text, "tier tape: expected the directory of a robot after tape:");
}

TEST(ATierOfOnesOwn, IsDescribedInPlatformFiles)
{
    auto const machine = machine::parse_platform(
        "[topology]\nkind = 'flat'\nnodes = 1\n[[tier]]\nname = 'reel'\nplace = '/robot'\n", "f.toml");
    ASSERT_TRUE(machine) << machine.error().text;
    EXPECT_EQ(machine->tiers[0].kind, "tape") << "by its name";
    EXPECT_EQ(machine->tiers[0].persistency, Persistency::permanent);
    EXPECT_EQ(refusal("[topology]\nkind = 'flat'\nnodes = 1\n[[tier]]\nname = 'x'\n"),
              "f.toml:4:1: tier.kind is missing: tier 'x' may be dram, numa, ssd or tape");
}

TEST(ATierOfOnesOwn, HoldsTheBuffersOfAPlan)
{
    auto const asked = planned({{"tapioca_aggrtier", "reel"}});
    EXPECT_EQ(asked.write.tiers(asked.job), std::vector<std::string>{"reel"});
    auto const needed = planned({{"tapioca_persistency", "permanent"}});
    EXPECT_EQ(needed.write.tiers(needed.job), std::vector<std::string>{"reel"});
    auto const cheapest = planned({});
    EXPECT_EQ(cheapest.write.tiers(cheapest.job), std::vector<std::string>{"dram"});
}

TEST(ATopologyOfOnesOwn, IsReadAndWrittenBack)
{
    auto const machine = jewel();
    EXPECT_EQ(machine.topology->kind(), "ring");
    EXPECT_EQ(machine.topology->distance(0, 5), 1);
    EXPECT_EQ(machine.topology->distance(1, 4), 3);
    EXPECT_EQ(machine::to_toml(machine), platform);
    EXPECT_EQ(refusal("[topology]\nkind = 'ring'\nnodes = 3\nfringe = 1\n"),
              "f.toml:4:1: unknown key 'fringe' in [topology]: did you mean 'finger'?");
    EXPECT_EQ(refusal("[topology]\nkind = 'rnig'\n"),
              "f.toml:2:8: topology.kind 'rnig' is unknown: did you mean 'ring'? There are flat, torus, dragonfly, "
              "fat_tree, matrix, ring");
}

TEST(ATopologyOfOnesOwn, TakesMeasuredLevels)
{
    auto machine = jewel();
    auto levels = machine.topology->levels();
    levels[0].bandwidth = 2e9;
    machine.topology = machine.topology->with_levels(levels);
    auto expected = std::string(platform);
    expected.replace(expected.find("\"1GB/s\""), 7, "\"2GB/s\"");
    EXPECT_EQ(machine::to_toml(machine), expected);
}

TEST(ATopologyOfOnesOwn, IsDrawn)
{
    auto const machine = jewel();
    tools::Picture picture;
    picture.machine = &machine;
    picture.nodes = {0, 1, 2, 3, 4, 5};
    picture.aggregators = {{5, "dram"}};
    picture.fed = {{{0, 1e6}}};
    auto const svg = tools::draw(picture);
    EXPECT_NE(svg.find(">ring little</text>"), std::string::npos);
    EXPECT_NE(svg.find(">ring: 6 of 6 nodes used</text>"), std::string::npos);
}

TEST(ATopologyOfOnesOwn, IsPlannedOn)
{
    auto const plan = planned({});
    EXPECT_EQ(homes(plan).size(), 2U);
    EXPECT_NE(plan::explain(plan, {}).find("ring of 6 nodes"), std::string::npos) << plan::explain(plan, {});
}

TEST(AStrategyOfOnesOwn, IsASettingAndElects)
{
    EXPECT_EQ(homes(planned({{"tapioca_strategy", "last_nodes"}})), (std::set<int>{4, 5}));
    EXPECT_EQ(homes(planned({{"tapioca_strategy", "RANK_ORDER"}})), (std::set<int>{0, 1}));
    auto const unknown = settings::resolve({}, {{"tapioca_strategy", "x"}}, {});
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().text.find("RANK_ORDER, LAST_NODES"), std::string::npos) << unknown.error().text;
}

}  // namespace
}  // namespace tapioca
