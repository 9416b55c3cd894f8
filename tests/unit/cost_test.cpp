// The cost models: the papers' own example, and the closed forms against the sums.
#include "plan/cost.hpp"

#include <random>

#include <gtest/gtest.h>

#include "plan/election.hpp"
#include "support/machines.hpp"

namespace tapioca::plan {
namespace {

constexpr double MB = 1024 * 1024;

/// The toy example of the paper of 2024, as shipped.
class Toy : public testing::Test {
protected:
    Toy()
    {
        auto const file = machine::read_platform("paper-toy");
        EXPECT_TRUE(file) << file.error().text;
        auto parsed = machine::parse_platform(file->text, file->path);
        EXPECT_TRUE(parsed) << parsed.error().text;
        machine = std::move(*parsed);
    }
    [[nodiscard]] std::size_t tier(std::string const& name) const
    {
        for (std::size_t i = 0; i < machine.tiers.size(); ++i)
            if (machine.tiers[i].name == name) return i;
        ADD_FAILURE() << name;
        return 0;
    }
    /// The election of the one aggregator, with what is free of hbm, dram and nvr, and buffers of 3 x 16 MB.
    [[nodiscard]] core::Result<std::vector<AggregatorPlace>> elect(std::vector<double> const& free_of,
                                                                   std::vector<std::string>* notes = nullptr) const
    {
        Election election;
        election.machine = &machine;
        election.where = {0, 1, 2, 3};
        election.aggregator_places = {1, 1, 1, 1};
        election.model = Model::paper_2024;
        election.needed_bytes = static_cast<std::uint64_t>(3 * 16 * MB);
        election.free_bytes.emplace_back(machine.tiers.size(), 0);
        auto const* name = "";
        for (std::size_t i = 0; i < 3; ++i) {
            name = i == 0 ? "hbm" : i == 1 ? "dram" : "nvr";
            election.free_bytes[0][tier(name)] = static_cast<std::uint64_t>(free_of[i]);
        }
        election.partitions = {{sources, 85 * MB, 1}};
        auto aggregator_places = assign(election, all_bids(election));
        if (aggregator_places && notes) *notes = notes_on(election, *aggregator_places);
        return aggregator_places;
    }

    machine::Machine machine;
    std::vector<machine::Source> const sources = {{0, 10 * MB}, {1, 50 * MB}, {2, 20 * MB}, {3, 5 * MB}};
};

TEST_F(Toy, GivesEveryValueOfTable2)
{
    CostModel const model(machine, Model::paper_2024);
    struct Row {
        double hbm, dram, nvr;
    };
    std::vector<Row> const table = {
        {0.593, 0.603, 2.350}, {0.470, 0.480, 2.020}, {0.742, 0.752, 2.710}, {0.503, 0.513, 2.120}};
    for (int process = 0; process < 4; ++process) {
        auto const& row = table[static_cast<std::size_t>(process)];
        auto const total = [&](std::string const& name) { return model.cost(sources, process, tier(name), 1).total_s; };
        EXPECT_NEAR(total("hbm"), row.hbm, 0.0005) << "P" << process;
        EXPECT_NEAR(total("dram"), row.dram, 0.0005) << "P" << process;
        EXPECT_NEAR(total("nvr"), row.nvr, 0.0005) << "P" << process;
    }
}

TEST_F(Toy, ElectsTheHighBandwidthMemoryOfP1AndTheNextTierWhereItIsTooSmall)
{
    constexpr double GB = 1024 * MB;
    std::vector<std::string> notes;
    auto const first = elect({16 * GB, 192 * GB, 128 * GB}, &notes);
    ASSERT_TRUE(first) << first.error().text;
    EXPECT_EQ((*first)[0].node, 1);
    EXPECT_EQ(machine.tiers[(*first)[0].tier].name, "hbm");
    EXPECT_TRUE(notes.empty());

    auto const second = elect({32 * MB, 192 * GB, 128 * GB}, &notes);
    ASSERT_TRUE(second);
    EXPECT_EQ(machine.tiers[(*second)[0].tier].name, "dram");
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(notes[0],
              "hbm would be faster, but has 32 MiB free of the 48 MiB that an aggregator takes: dram instead");

    auto const third = elect({32 * MB, 32 * MB, 128 * GB});
    ASSERT_TRUE(third);
    EXPECT_EQ(machine.tiers[(*third)[0].tier].name, "nvr");

    auto const none = elect({32 * MB, 32 * MB, 32 * MB});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Errc::memory);
    EXPECT_EQ(
        none.error().text,
        "an aggregator takes 48 MiB, and only 0 of 1 find room: hbm has 32 MiB, dram has 32 MiB, nvr has 32 MiB free "
        "on a node; lower TAPIOCA_BUFFERSIZE, TAPIOCA_BUFFERS or TAPIOCA_NBAGGR");
}

TEST(Cost, ClosedFormsAgreeWithTheSumsOnRandomMachines)
{
    std::mt19937_64 random(3);
    for (int trial = 0; trial < 300; ++trial) {
        auto const machine = test::random_machine(random, 64);
        auto const nodes = machine.topology->nodes();
        std::vector<machine::Source> sources;
        for (int node = 0; node < nodes; ++node)
            if (random() % 2 == 0) sources.push_back({node, static_cast<double>(random() % 100'000'000)});
        for (auto const model :
             {Model::pipelined, Model::paper_2024, Model::cluster_2017, Model::poster, Model::report_2017}) {
            CostModel const costs(machine, model);
            auto const all = costs.costs(sources, 0, 4);
            for (int node = 0; node < nodes; ++node) {
                auto const one = costs.cost(sources, node, 0, 4);
                auto const& same = all[static_cast<std::size_t>(node)];
                ASSERT_NEAR(same.total_s, one.total_s, 1e-9 * (1 + one.total_s)) << name(model);
                ASSERT_NEAR(same.c1_s, one.c1_s, 1e-9 * (1 + one.c1_s));
                ASSERT_DOUBLE_EQ(same.c2_s, one.c2_s);
            }
        }
    }
}

TEST(Cost, WithoutGatewaysThePapersModelsDoNotChargeTheWayToTheFile)
{
    auto const machine = test::flat_machine(3);
    std::vector<machine::Source> const sources = {{0, 1e6}, {2, 1e6}};
    for (auto const model : {Model::paper_2024, Model::cluster_2017, Model::poster, Model::report_2017})
        EXPECT_EQ(CostModel(*machine, model).cost(sources, 1, 0, 1).c2_s, 0) << name(model);
}

TEST(Cost, ThePosterAndTheReportTakeTheSlowestProducerAndTheOthersAddThemUp)
{
    auto const machine = test::flat_machine(3);
    std::vector<machine::Source> const sources = {{0, 125e6}, {2, 250e6}};
    auto const link_s = 2 * 50e-6;  // two hops
    for (auto const model : {Model::poster, Model::report_2017})
        EXPECT_NEAR(CostModel(*machine, model).cost(sources, 1, 0, 1).c1_s, link_s + 2, 1e-9) << name(model);
    for (auto const model : {Model::paper_2024, Model::cluster_2017})
        EXPECT_NEAR(CostModel(*machine, model).cost(sources, 1, 0, 1).c1_s, 2 * link_s + 3, 1e-9) << name(model);
}

TEST(Cost, TheReportSharesTheWayToTheFileAmongTheNodesOfAPartition)
{
    auto machine = *test::flat_machine(3);
    machine.gateways.link = {"storage", 1e-3, 100e6};
    machine.gateways.hops = {1, 2, 3};
    std::vector<machine::Source> const sources = {{0, 125e6}, {2, 250e6}};  // |V_C| = 2
    auto const c2 = [&](Model model) { return CostModel(machine, model).cost(sources, 1, 0, 1).c2_s; };
    for (auto const model : {Model::paper_2024, Model::cluster_2017, Model::poster})
        EXPECT_NEAR(c2(model), 2e-3 + 375e6 / 100e6, 1e-9) << name(model);
    EXPECT_NEAR(c2(Model::report_2017), 2e-3 + 375e6 / (2 * 100e6), 1e-9);
}

TEST(Cost, ThePapersModelsOf2017KnowNoTiers)
{
    auto machine = *test::flat_machine(3);
    machine.tiers.push_back(test::tier("ssd", "ssd", 1, 1e6, 1e12));
    std::vector<machine::Source> const sources = {{0, 125e6}, {1, 250e6}};
    for (auto const model : {Model::cluster_2017, Model::poster, Model::report_2017})
        EXPECT_EQ(CostModel(machine, model).cost(sources, 1, 0, 1).total_s,
                  CostModel(machine, model).cost(sources, 1, 1, 1).total_s)
            << name(model);
}

TEST(Cost, OursOverlapsGatheringWithDrainingAndCountsTheTiersReadBandwidth)
{
    machine::Machine machine = *test::flat_machine(2);
    machine.tiers.push_back(test::tier("ssd", "ssd", 100e-6, 1e9, 1e12));
    machine.tiers.back().read_bandwidth.value = 0.1e9;
    std::vector<machine::Source> const sources = {{0, 1e9}};
    auto const cost = CostModel(machine, Model::pipelined).cost(sources, 1, 1, 10);
    EXPECT_NEAR(cost.c1_s, 8 + 1 + 10 * (2 * 50e-6 + 100e-6), 1e-6) << "the link, then the copy into the tier";
    EXPECT_NEAR(cost.c2_s, 10, 1e-6);
    EXPECT_NEAR(cost.total_s, cost.c2_s + cost.c1_s / 10, 1e-6);
}

}  // namespace
}  // namespace tapioca::plan
