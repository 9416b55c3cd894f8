// What tapioca calibrate decides without measuring anything.
#include <gtest/gtest.h>

#include "calibrate/findings.hpp"
#include "calibrate/links.hpp"
#include "calibrate/target.hpp"

namespace calibrate {
namespace {

using namespace tapioca::machine;

Machine parsed(std::string const& topology)
{
    auto machine = parse_platform("[topology]\n" + topology, "m.toml");
    EXPECT_TRUE(machine) << machine.error().text;
    return machine ? *machine : Machine{};
}

std::vector<int> first_nodes(int count)
{
    std::vector<int> where;
    for (int node = 0; node < count; ++node) where.push_back(node);
    return where;
}

TEST(Pairs, BelongToTheOutermostLevelOnTheirWay)
{
    auto const machine = parsed("kind = 'fat_tree'\narity = [2, 2, 4]");
    auto const pairs = choose_pairs(*machine.topology, first_nodes(16), 3);
    ASSERT_EQ(pairs.size(), 3U);
    for (std::size_t level = 0; level < pairs.size(); ++level) {
        ASSERT_EQ(pairs[level].size(), 3U);
        for (auto const [from, to] : pairs[level])
            EXPECT_EQ(machine.topology->distance(from, to), 2 * (static_cast<int>(level) + 1));
    }
}

TEST(Pairs, AreNoneWhereTheJobDoesNotReach)
{
    auto const machine = parsed("kind = 'dragonfly'\ngroups = 4\nrows = 2\ncolumns = 2\nnodes_per_router = 1");
    auto const pairs = choose_pairs(*machine.topology, first_nodes(4), 4);
    EXPECT_TRUE(pairs[0].empty());
    EXPECT_EQ(pairs[1].size(), 4U);
    EXPECT_TRUE(pairs[2].empty());
    for (auto const& list : choose_pairs(*machine.topology, {0}, 4)) EXPECT_TRUE(list.empty());
}

TEST(Levels, AreReplacedAndNothingElse)
{
    for (auto const* const text :
         {"kind = 'flat'\nnodes = 5", "kind = 'torus'\ndimensions = [2, 3, 4]",
          "kind = 'dragonfly'\ngroups = 3\nrows = 2\ncolumns = 3\nnodes_per_router = 2",
          "kind = 'fat_tree'\narity = [3, 2, 2]", "kind = 'fat_tree'\nswitches = [[[0, 4], [2]], 3, [1, 5, 6]]",
          "kind = 'matrix'\ndistances = [[0, 3, 1], [3, 0, 2], [1, 2, 0]]"}) {
        auto const machine = parsed(text);
        auto const& before = *machine.topology;
        auto levels = before.levels();
        for (auto& level : levels) level.bandwidth = 7;
        auto const after = before.with_levels(levels);
        EXPECT_EQ(after->kind(), before.kind());
        EXPECT_EQ(after->dimensions(), before.dimensions());
        ASSERT_EQ(after->nodes(), before.nodes()) << text;
        for (int a = 0; a < before.nodes(); ++a)
            for (int b = 0; b < before.nodes(); ++b) EXPECT_EQ(after->hops(a, b), before.hops(a, b)) << text;
        for (auto const& level : after->levels()) EXPECT_EQ(level.bandwidth, 7);
    }
}

TEST(Streams, AreTheFewestThatAreNearlyAsFastAsTheBest)
{
    std::vector<Streams> const rows = {{1, 100, 10}, {2, 190, 20}, {4, 199, 40}, {8, 150, 80}};
    EXPECT_EQ(enough(rows, &Streams::write).count, 2);
    EXPECT_EQ(enough(rows, &Streams::read).count, 8);
}

TEST(Spread, IsEvenAndBounded)
{
    EXPECT_EQ(spread(3, 4), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(spread(100, 4), (std::vector<int>{0, 25, 50, 75}));
    EXPECT_TRUE(spread(0, 4).empty());
}

Findings some_findings()
{
    auto machine = parsed("kind = 'fat_tree'\narity = [2, 2]\nlevel = [{name = \"in\\nner\"}, {name = 'outer'}]");
    machine.tiers = {{"slow", "ssd", "/x", {1}, {10}, {10}, {100}, tapioca::Persistency::job},
                     {"dram", "dram", "", {}, {}, {}, {}, tapioca::Persistency::none}};
    Findings f;
    f.around.machine = std::make_shared<Machine const>(machine);
    f.around.where = {0, 1};
    f.around.free_bytes = {{3 << 20, 9 << 20}, {2 << 20, 0}};
    f.ranks = 2;
    f.directory = "/a\nb";
    f.links = {{0, 1, 1}, {2, 3e-6, 118123456.7}};
    f.tiers = {{0, 0, 0, 0, "no room"}, {2, 1.5e-7, 1.23456e10, 2e10}};
    f.target.rows = {{1, 100, 10}, {2, 180, 20}};
    f.target.storage = storage_profile("ext");
    f.target.storage.write_streams = 2;
    f.target.storage.write_bw = 90;
    return f;
}

TEST(File, IsReadBackWithWhatWasMeasured)
{
    auto const text = platform_text(some_findings(), "h", "2024-01-01");
    auto const machine = parse_platform(text, "m.toml");
    ASSERT_TRUE(machine) << machine.error().text << text;
    EXPECT_EQ(machine->name, "measured on h, 2024-01-01");
    EXPECT_EQ(machine->topology->levels()[0].bandwidth, 12.5e9) << "not measured, hence kept";
    EXPECT_EQ(machine->topology->levels()[1].latency_s, 3e-6);
    EXPECT_EQ(machine->topology->levels()[1].bandwidth, 118.1e6);
    ASSERT_EQ(machine->tiers.size(), 2U);
    EXPECT_EQ(machine->tiers[0].name, "dram") << "fastest first";
    EXPECT_EQ(machine->tiers[0].write_bandwidth.value, 1.235e10);
    EXPECT_EQ(machine->tiers[0].write_bandwidth.origin, Origin::measured);
    EXPECT_EQ(machine->tiers[0].capacity_bytes.value, 9 << 20);
    EXPECT_EQ(machine->tiers[1].write_bandwidth.origin, Origin::assumed);
    EXPECT_EQ(machine->tiers[1].capacity_bytes.value, 2 << 20) << "the least of the nodes that have it";
    ASSERT_TRUE(machine->storage);
    EXPECT_EQ(machine->storage->write_streams, 2);
    EXPECT_EQ(machine->storage->contended_write_bw, 180);
}

TEST(File, SaysWhatIsNotMeasured)
{
    auto const text = platform_text(some_findings(), "h", "2024-01-01");
    EXPECT_NE(text.find("# Not measured, for want of nodes: level in?ner.\n"), std::string::npos) << text;
    EXPECT_NE(text.find("# Not measured: tier slow.\n"), std::string::npos) << text;
    EXPECT_NE(text.find("# More writers than these ranks were not tried.\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("# More readers"), std::string::npos) << text;
}

}  // namespace
}  // namespace calibrate
