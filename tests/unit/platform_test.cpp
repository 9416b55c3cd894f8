// Platform files: what they mean, what is refused and how.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/units.hpp"
#include "machine/machine.hpp"
#include "machine/platform/figures.hpp"
#include "machine/platform/gateways.hpp"

namespace tapioca::machine {
namespace {

using Strings = std::vector<std::string>;
using Ints = std::vector<int>;

Machine parsed(std::string const& text)
{
    auto machine = parse_platform(text, "x.toml");
    EXPECT_TRUE(machine) << machine.error().text << '\n' << text;
    return machine.value();
}

Machine shipped(std::string const& name)
{
    auto const text = read_platform(name);
    EXPECT_TRUE(text) << text.error().text;
    auto machine = parse_platform(text->text, text->path);
    EXPECT_TRUE(machine) << machine.error().text;
    return machine.value();
}

std::string refusal(std::string const& text)
{
    auto const machine = parse_platform(text, "x.toml");
    if (machine) return "accepted";
    EXPECT_EQ(machine.error().code, Errc::setting);
    return machine.error().text;
}

std::string const flat4 = "[topology]\nkind = \"flat\"\nnodes = 4\n";

std::string with(std::string const& more)
{
    return flat4 + more + '\n';
}
std::string topology(std::string const& lines)
{
    return "[topology]\n" + lines + '\n';
}

TEST(Figures, AreWrittenWithUnits)
{
    EXPECT_EQ(parse_bandwidth("12.5GiB/s"), 12.5 * 1073741824);
    EXPECT_EQ(parse_bandwidth("1.8GB/s"), 1.8e9);
    EXPECT_EQ(parse_bandwidth("200Mbit/s"), 25e6);
    EXPECT_EQ(parse_bandwidth("56 Gbit/s"), 7e9);
    EXPECT_EQ(parse_latency("30ms"), 30e-3);
    EXPECT_EQ(parse_latency("1.5us"), 1.5e-6);
    EXPECT_EQ(parse_latency("80ns"), 80e-9);
    EXPECT_EQ(parse_latency("2s"), 2);
    for (auto const* const text : {"", "GB/s", "1", "1GB", "1 GB /s", "1gb/s", "nanGB/s", "infGB/s", "1GB/s "})
        EXPECT_EQ(parse_bandwidth(text), std::nullopt) << text;
    for (auto const* const text : {"", "us", "1", "1 m", "nans", "0x1s", "1us1"})
        EXPECT_EQ(parse_latency(text), std::nullopt) << text;
}

TEST(Figures, AreShownSoThatTheyParseToTheSame)
{
    EXPECT_EQ(bandwidth_value(1.8e9), "\"1.8GB/s\"");
    EXPECT_EQ(bandwidth_value(12.5 * 1073741824), "\"12.5GiB/s\"");
    EXPECT_EQ(latency_value(1.5e-6), "\"1.5us\"");
    EXPECT_EQ(latency_value(0), "0");
    EXPECT_EQ(bandwidth_value(1.0 / 3), "0.3333333333333333");
    EXPECT_EQ(bytes_value(16 * core::GiB), "\"16GiB\"");
    EXPECT_EQ(bytes_value(1000), "1000");
    EXPECT_EQ(bytes_value((std::uint64_t{1} << 53) + 1), "9007199254740993");
}

TEST(Platform, IsTheSameAfterItWasWritten)
{
    std::string const text =
        "[topology]\nkind = \"flat\"\nnodes = 1\n[storage]\ntype = \"gpfs\"\nstripe = 9007199254740993\n"
        "[[tier]]\nname = \"ssd:/tmp\"\nplace = \"\"\ncapacity = 4611686018427387903\n";
    auto const machine = parse_platform(text, "f.toml").value();
    auto const again = parse_platform(to_toml(machine), "f.toml");
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->storage->stripe_bytes, 9007199254740993);
    EXPECT_EQ(again->tiers[0].place, "");
    EXPECT_EQ(again->tiers[0].capacity_bytes.value, machine.tiers[0].capacity_bytes.value);
    EXPECT_FALSE(
        parse_platform("[topology]\nkind = \"flat\"\nnodes = 1\n[[tier]]\nname = \"dram\"\n"
                       "capacity = 9223372036854775807\n",
                       "f.toml"));
}

TEST(Platform, DeepNestingIsRefused)
{
    auto const is_refused = [](std::string const& text) {
        auto const machine = parse_platform(text, "f.toml");
        return !machine && machine.error().text.starts_with("f.toml:");
    };
    for (std::string const open : {"[", "{a=", "[["}) {
        std::string text = "[topology]\nkind = \"fat_tree\"\nswitches = ";
        for (int i = 0; i < 100000; ++i) text += open;
        EXPECT_TRUE(is_refused(text)) << open;
    }
    for (int const parts : {9'000, 1'000'000}) {
        std::string keys = "a";
        for (int i = 0; i < parts; ++i) keys += ".a";
        EXPECT_TRUE(is_refused(keys + " = 1\n")) << parts;
        EXPECT_TRUE(is_refused('[' + keys + "]\n")) << parts;
    }
    std::string hosts = "hosts = \"n.example.org";
    for (int i = 0; i < 2000; ++i) hosts += ",n" + std::to_string(i) + ".example.org";
    EXPECT_FALSE(is_refused(hosts + "\"\n[topology]\nkind = \"flat\"\nnodes = 2001\n")) << "many dots, and no key";
}

TEST(Platform, HoldsAllThatTheDocumentationTells)
{
    auto const machine = parsed(R"(
name = "example"
hosts = "n[0-7]"
[node]
cores = 48
[topology]
kind = "torus"
nodes = 8
dimensions = [2, 4]
[[topology.level]]
name = "wire"
latency = "1.5us"
bandwidth = "100Gbit/s"
[gateways]
block = 4
per_block = [1]
bandwidth = "1GB/s"
[[tier]]
name = "hbm"
place = "2,3"
bandwidth = "400GB/s"
latency = 1e-7
capacity = "16GiB"
[[tier]]
name = "nvr"
kind = "ssd"
directory = "/local"
write_bandwidth = "1GB/s"
read_bandwidth = 2_000_000_000
capacity = 1000
persistency = "permanent"
origin = "measured"
[storage]
type = "lustre"
block = "1MiB"
stripe = "8MiB"
stripe_count = 48
write_streams = 10
read_streams = 20
write_bandwidth = "1GB/s"
read_bandwidth = "2GB/s"
remote = true
[settings]
buffersize = "16MiB"
buffers = 3
devnull = false
)");
    EXPECT_EQ(machine.name, "example");
    EXPECT_EQ(machine.origin, "platform file x.toml");
    EXPECT_EQ(machine.cores, 48);
    EXPECT_EQ(machine.hosts.at(7), "n7");
    EXPECT_EQ(machine.topology->dimensions(), (Ints{2, 4}));
    EXPECT_EQ(machine.topology->levels()[0].name, "wire");
    EXPECT_EQ(machine.topology->levels()[0].latency_s, 1.5e-6);
    EXPECT_EQ(machine.topology->levels()[0].bandwidth, 12.5e9);
    EXPECT_EQ(machine.gateways.nodes, (Ints{1, 5}));
    EXPECT_EQ(machine.gateways.hops, (Ints{2, 1, 2, 3, 2, 1, 2, 3}));
    EXPECT_EQ(machine.gateways.link.bandwidth, 1e9);
    EXPECT_EQ(machine.gateways.link.latency_s, 1.5e-6);
    ASSERT_EQ(machine.tiers.size(), 2U);
    auto const& hbm = machine.tiers[0];
    EXPECT_EQ(hbm.kind, "numa");
    EXPECT_EQ(hbm.place, "2,3");
    EXPECT_EQ(hbm.read_bandwidth.value, 400e9);
    EXPECT_EQ(hbm.read_bandwidth.origin, Origin::platform);
    EXPECT_EQ(hbm.capacity_bytes.value, 16.0 * core::GiB);
    EXPECT_EQ(hbm.persistency, Persistency::none);
    auto const& nvr = machine.tiers[1];
    EXPECT_EQ(nvr.kind, "ssd");
    EXPECT_EQ(nvr.place, "/local");
    EXPECT_EQ(nvr.write_bandwidth.value, 1e9);
    EXPECT_EQ(nvr.read_bandwidth.value, 2e9);
    EXPECT_EQ(nvr.write_bandwidth.origin, Origin::measured);
    EXPECT_EQ(nvr.latency_s.origin, Origin::assumed);  // not given
    EXPECT_EQ(nvr.persistency, Persistency::permanent);
    ASSERT_TRUE(machine.storage);
    EXPECT_EQ(machine.storage->name, "lustre");
    EXPECT_EQ(machine.storage->block_bytes, 1 << 20);
    EXPECT_EQ(machine.storage->stripe_bytes, 8 << 20);
    EXPECT_EQ(machine.storage->stripe_count, 48);
    EXPECT_EQ(machine.storage->contended_write_bw, 10e9);
    EXPECT_EQ(machine.storage->read_bw, 2e9);
    EXPECT_TRUE(machine.storage->remote);
    EXPECT_EQ(machine.settings, (std::vector<std::pair<std::string, std::string>>{
                                    {"buffers", "3"}, {"buffersize", "16MiB"}, {"devnull", "false"}}));
}

TEST(Platform, TheExampleInTheDocumentationIsOne)
{
    namespace fs = std::filesystem;
    auto const platforms = fs::canonical(read_platform("mira").value().path).parent_path();  // those of the source tree
    std::ifstream page(platforms.parent_path() / "docs" / "platforms.md");
    std::string text;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("```"))
            inside = line == "```toml";
        else if (inside)
            text += line + '\n';
    }
    auto const machine = parsed(text);
    EXPECT_EQ(machine.name, "garden");
    EXPECT_EQ(machine.tiers.size(), 2U);
}

TEST(Platform, WithoutFiguresOfItsLinksSaysThatTheyAreAssumed)
{
    auto const machine = parsed(flat4);
    EXPECT_EQ(machine.name, "x");
    EXPECT_EQ(machine.origin, "platform file x.toml; latency or bandwidth of links assumed");
    EXPECT_EQ(machine.topology->levels()[0].bandwidth, 12.5e9);
    EXPECT_TRUE(machine.gateways.hops.empty());
    EXPECT_FALSE(machine.storage);
}

TEST(Platform, TheLastLevelGivenHoldsForTheRest)
{
    auto const tree =
        parsed(topology("kind = \"fat_tree\"\narity = [4, 2, 2]\n[[topology.level]]\nlatency = \"2us\"\n"
                        "bandwidth = \"1GB/s\"\n[[topology.level]]\nlatency = \"3us\"\nbandwidth = 5e9\nlinks = 3"));
    ASSERT_EQ(tree.topology->levels().size(), 3U);
    EXPECT_EQ(tree.topology->levels()[0].links, 0);
    EXPECT_EQ(tree.topology->levels()[2].links, 3);
    EXPECT_EQ(parsed(to_toml(tree)).topology->levels()[1].links, 3);
    EXPECT_EQ(tree.topology->levels()[2].name, "level 3");
    EXPECT_EQ(tree.topology->levels()[2].latency_s, 3e-6);
    EXPECT_EQ(tree.topology->nodes(), 16);
    EXPECT_EQ(tree.topology->hops(0, 15), (Ints{2, 2, 2}));
}

TEST(Platform, SwitchesAreNestedListsOfHostsOrNumbers)
{
    auto const named = parsed(topology("kind = \"fat_tree\"\nswitches = [[\"n[0-1]\"], [\"n2\", \"n3\"]]"));
    EXPECT_EQ(named.hosts, (Strings{"n0", "n1", "n2", "n3"}));
    EXPECT_EQ(named.topology->distance(0, 1), 2);
    EXPECT_EQ(named.topology->distance(1, 2), 4);
    auto const ordered =
        parsed("hosts = \"n[0-3]\"\n" + topology("kind = \"fat_tree\"\nswitches = [[\"n3\", \"n0\"], [\"n[1-2]\"]]"));
    EXPECT_EQ(ordered.hosts.front(), "n0");
    EXPECT_EQ(ordered.topology->distance(0, 3), 2);
    auto const uneven = parsed(topology("kind = \"fat_tree\"\nswitches = [[[0, 1], [2]], 3, 4]"));
    EXPECT_EQ(uneven.topology->distance(0, 1), 2);
    EXPECT_EQ(uneven.topology->distance(0, 2), 4);
    EXPECT_EQ(uneven.topology->distance(0, 3), 6);
    EXPECT_EQ(uneven.topology->distance(3, 4), 2);
}

TEST(Platform, GatewaysWithoutBlocksServeAll)
{
    auto const ring = parsed(topology("kind = \"torus\"\ndimensions = [8]") + "[gateways]\nnodes = [6, 1, 6]\n");
    EXPECT_EQ(ring.gateways.nodes, (Ints{1, 6}));
    EXPECT_EQ(ring.gateways.hops, (Ints{2, 1, 2, 3, 3, 2, 1, 2}));
}

TEST(Platform, AllOfMiraIsReadQuickly)
{
    auto const line = topology("kind = \"torus\"\nnodes = 49152\ndimensions = [8, 12, 16, 16, 2]");
    auto const psets = parsed(line + "[gateways]\nblock = 128\nper_block = [0, 64]\n");
    EXPECT_EQ(psets.gateways.nodes.size(), 768U);
    auto const all = parsed(line + "[gateways]\nnodes = [0, 24576]\n");
    EXPECT_EQ(*std::max_element(all.gateways.hops.begin(), all.gateways.hops.end()), 1 + 2 + 6 + 8 + 8 + 1);
}

struct Bad {
    std::string text, line;
};

TEST(Platform, RefusesBadInputWithOneLineThatSaysWhere)
{
    std::vector<Bad> const cases = {
        {"[topology", "x.toml:1:10: Error while parsing table header: encountered end-of-file"},
        {flat4 + "nodes = 5\n",
         "x.toml:4:9: Error while parsing key-value pair: cannot redefine existing integer 'nodes'"},
        {"", "x.toml:1:1: topology is missing"},
        {"topology = 3", "x.toml:1:12: topology must be a table: [topology]"},
        {"[topolgy]", "x.toml:1:2: unknown key 'topolgy': did you mean 'topology'?"},
        {with("zzzzzzzzzz = 1"), "x.toml:4:1: unknown key 'zzzzzzzzzz' in [topology]: there are kind, nodes, level"},
        {topology("kind = \"flat\"\nnode = 4"), "x.toml:3:1: unknown key 'node' in [topology]: did you mean 'nodes'?"},
        {with("dimensions = [4]"), "x.toml:4:1: unknown key 'dimensions' in [topology]: there are kind, nodes, level"},
        {with("[[topology.level]]\nlatancy = 1"),
         "x.toml:5:1: unknown key 'latancy' in [[topology.level]]: did you mean 'latency'?"},
        {with("[gateways]\nhop = [1]"), "x.toml:5:1: unknown key 'hop' in [gateways]: did you mean 'hops'?"},
        {with("[[tier]]\nnam = 'dram'"), "x.toml:5:1: unknown key 'nam' in [[tier]]: did you mean 'name'?"},
        {with("[storage]\ntyp = 'gpfs'"), "x.toml:5:1: unknown key 'typ' in [storage]: did you mean 'type'?"},
        {with("[node]\ncore = 4"), "x.toml:5:1: unknown key 'core' in [node]: did you mean 'cores'?"},
        {"[topology]", "x.toml:1:1: topology.kind is missing"},
        {topology("kind = \"tours\""),
         "x.toml:2:8: topology.kind 'tours' is unknown: did you mean 'torus'? There are "
         "flat, torus, dragonfly, fat_tree, matrix"},
        {topology("kind = 4"), "x.toml:2:8: topology.kind must be a string"},
        {topology("kind = \"flat\""), "x.toml:1:1: topology.nodes is missing"},
        {topology("kind = \"flat\"\nnodes = \"4\""),
         "x.toml:3:9: topology.nodes must be a whole number from 1 to 1000000"},
        {topology("kind = \"flat\"\nnodes = 0"), "x.toml:3:9: topology.nodes must be a whole number from 1 to 1000000"},
        {topology("kind = \"flat\"\nnodes = 1000001"),
         "x.toml:3:9: topology.nodes must be a whole number from 1 to 1000000"},
        {topology("kind = \"torus\"\nnodes = 9\ndimensions = [2, 4]"),
         "x.toml:4:14: topology.dimensions multiplies up to 8 nodes, topology.nodes is 9"},
        {topology("kind = \"torus\"\ndimensions = [1000000, 1000000, 1000000, 1000000]"),
         "x.toml:3:14: topology.dimensions multiplies up to more than 1000000 nodes"},
        {topology("kind = \"torus\"\ndimensions = [4, 0]"),
         "x.toml:3:18: topology.dimensions must be a whole number from 1 to 1000000"},
        {topology("kind = \"torus\"\ndimensions = []"),
         "x.toml:3:14: topology.dimensions must list the torus's sizes, such as [4, 4, 8]"},
        {topology("kind = \"torus\"\ndimensions = 8"),
         "x.toml:3:14: topology.dimensions must be a list of whole numbers"},
        {topology("kind = \"torus\"\ndimensions = [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"),
         "x.toml:3:14: topology.dimensions has more than 16 sizes"},
        {topology("kind = \"dragonfly\"\ngroups = 2\nrows = 2\ncolumns = 2"),
         "x.toml:1:1: topology.nodes_per_router is missing"},
        {topology("kind = \"dragonfly\"\nnodes = 7\ngroups = 2\nrows = 1\ncolumns = 2\nnodes_per_router = 2"),
         "x.toml:4:10: topology.groups multiplies up to 8 nodes, topology.nodes is 7"},
        {topology("kind = \"fat_tree\""),
         "x.toml:1:1: topology.arity or topology.switches must be given, and not both"},
        {topology("kind = \"fat_tree\"\narity = [4, 2]\n[[topology.level]]\nlinks = -1"),
         "x.toml:5:9: topology.level.links must be a whole number from 0 to 1000000"},
        {topology("kind = \"flat\"\nnodes = 9\n[[topology.level]]\nlinks = 1"),
         "x.toml:4:1: topology.level has links that nodes share, which only a fat_tree of several levels has"},
        {topology("kind = \"fat_tree\"\nnodes = 9\narity = [4, 2]"),
         "x.toml:4:9: topology.arity multiplies up to 8 nodes, topology.nodes is 9"},
        {topology("kind = \"fat_tree\"\nswitches = [[0, 1], [1]]"), "x.toml:3:12: topology.switches has node 1 twice"},
        {topology("kind = \"fat_tree\"\nswitches = [[0, 1], [3]]"),
         "x.toml:3:12: topology.switches has 3 nodes, so that there is no node 3"},
        {topology("kind = \"fat_tree\"\nswitches = [[\"a\", \"b\"], [\"a\"]]"),
         "x.toml:3:12: topology.switches has node 'a' twice"},
        {topology("kind = \"fat_tree\"\nswitches = [[\"a\", 1]]"),
         "x.toml:3:19: topology.switches must hold either host names or node numbers"},
        {topology("kind = \"fat_tree\"\nswitches = [[], [1]]"),
         "x.toml:3:13: topology.switches has a switch with nothing below it"},
        {topology("kind = \"fat_tree\"\nswitches = [1.5]"),
         "x.toml:3:13: topology.switches must hold lists, host names or node numbers"},
        {"hosts = \"a,b\"\n" + topology("kind = \"fat_tree\"\nswitches = [\"a\", \"c\"]"),
         "x.toml:4:12: topology.switches has 'c', which is not in hosts"},
        {topology("kind = \"matrix\"\ndistances = [[0, 1], [1]]"),
         "x.toml:3:13: topology.distances must be square: row 1 has 1 of 2 numbers"},
        {topology("kind = \"matrix\"\ndistances = [[0, 1], [2, 0]]"),
         "x.toml:3:13: topology.distances must be symmetric: 1 from node 0 to 1, 2 back"},
        {topology("kind = \"matrix\"\ndistances = [[0, 0], [0, 0]]"),
         "x.toml:3:13: topology.distances must be at least 1 between nodes 0 and 1"},
        {topology("kind = \"matrix\"\ndistances = [[1]]"),
         "x.toml:3:13: topology.distances must be 0 from node 0 to itself"},
        {topology("kind = \"matrix\"\nnodes = 3\ndistances = [[0, 1], [1, 0]]"),
         "x.toml:4:13: topology.distances multiplies up to 2 nodes, topology.nodes is 3"},
        {with("[[topology.level]]\n[[topology.level]]"),
         "x.toml:4:1: topology.level has 2 entries; the most that are possible here is 1"},
        {with("[[topology.level]]\nlatency = \"-1us\""),
         "x.toml:5:11: topology.level.latency must be a latency of at least 0 such as \"1.5us\", \"30ms\" or a number "
         "of "
         "seconds"},
        {with("[gateways]\nnodes = [4]"), "x.toml:5:10: gateways.nodes must be a whole number from 0 to 3"},
        {with("[gateways]\nnodes = [-1]"), "x.toml:5:10: gateways.nodes must be a whole number from 0 to 3"},
        {with("[gateways]\nlatency = 1"),
         "x.toml:4:1: gateways.nodes is empty or missing, and so are per_block and hops"},
        {with("[gateways]\nblock = 3\nper_block = [0]"), "x.toml:5:9: gateways.block of 3 does not divide 4 nodes"},
        {with("[gateways]\nblock = 2\nper_block = [2]"),
         "x.toml:6:14: gateways.per_block must be a whole number from 0 to 1"},
        {with("[gateways]\nper_block = [0]"), "x.toml:5:13: gateways.per_block needs gateways.block"},
        {with("[gateways]\nblock = 2\nnodes = [0]"), "x.toml:6:9: gateways.nodes leaves a block without a gateway"},
        {with("[gateways]\nblock = 2\nnodes = [0]\nper_block = [0]"),
         "x.toml:7:13: gateways.per_block cannot be given with gateways.nodes"},
        {with("[gateways]\nnodes = [0]\nservers = [[1]]"),
         "x.toml:6:11: gateways.servers names node 1, which is none of gateways.nodes"},
        {with("[gateways]\nnodes = [0]\nservers = [[]]"),
         "x.toml:6:11: gateways.servers has a server without a gateway"},
        {with("[gateways]\nnodes = [0]\nservers = []"), "x.toml:6:11: gateways.servers is empty"},
        {with("[gateways]\nhops = [1, 1, 1, 1]\nservers = [[0]]"),
         "x.toml:6:11: gateways.servers needs gateways.nodes"},
        {with("[gateways]\nblock = 2\nper_block = [0]\nservers = [[0]]"),
         "x.toml:7:11: gateways.servers cannot be given with gateways.block"},
        {with("[gateways]\nnodes = [0]\nblock_bandwidth = \"1GB/s\""),
         "x.toml:6:19: gateways.block_bandwidth needs gateways.block, and nodes or per_block"},
        {with("[storage]\ntype = \"gpfs\"\nshare_nodes = 0"),
         "x.toml:6:15: storage.share_nodes must be a whole number from 1 to 1000000"},
        {with("[gateways]\nhops = [1, 2]"), "x.toml:5:8: gateways.hops has 2 numbers for 4 nodes"},
        {"hosts = \"n[0-6]\"\n" + topology("kind = \"flat\"\nnodes = 8"),
         "x.toml:1:9: hosts has 7 names, the topology 8 nodes"},
        {"hosts = \"n[0-2],n1\"\n" + flat4, "x.toml:1:9: hosts has 'n1' twice"},
        {"hosts = \"n[0-\"\n" + flat4, "x.toml:1:9: hosts has a bad host list 'n[0-': a '[' without its ']'"},
        {"hosts = 4\n" + flat4, "x.toml:1:9: hosts must be a host list such as \"n[0-7]\", or several"},
        {with("[[tier]]"), "x.toml:4:1: tier.name is missing"},
        {"tier = 3\n" + flat4, "x.toml:1:8: tier must be tables: [[tier]]"},
        {with("[[tier]]\nname = \"dram\"\n[[tier]]\nname = \"dram\""),
         "x.toml:7:8: tier.name 'dram' is taken by an earlier tier"},
        {with("[[tier]]\nname = \"nvr\""), "x.toml:4:1: tier.kind is missing: tier 'nvr' may be dram, numa or ssd"},
        {with("[[tier]]\nname = \"nvr\"\nkind = \"sdd\""),
         "x.toml:6:8: tier.kind 'sdd' is unknown: did you mean 'ssd'? There are dram, numa, ssd"},
        {with("[[tier]]\nname = \"ssd\"\npersistency = \"jobs\""),
         "x.toml:6:15: tier.persistency 'jobs' is unknown: did you mean 'job'? There are none, job, permanent"},
        {with("[[tier]]\nname = \"ssd\"\ncapacity = \"16XB\""),
         "x.toml:6:12: tier.capacity must be a positive number of bytes such as 16777216 or \"16MiB\""},
        {with("[storage]"), "x.toml:4:1: storage.type is missing"},
        {with("[storage]\ntype = \"gpfs\"\nblock = 5000"),
         "x.toml:6:9: storage.block must be a power of two from 512 bytes to 1 GiB"},
        {with("[storage]\ntype = \"gpfs\"\nremote = 1"), "x.toml:6:10: storage.remote must be true or false"},
        {with("[settings]\nbuffers = [2]"),
         "x.toml:5:11: settings.buffers must be a string, a whole number, true or false"},
    };
    for (auto const& bad : cases) EXPECT_EQ(refusal(bad.text), bad.line) << bad.text;
    for (auto const* const value : {"0", "-1", "nan", "inf", "-inf", "\"0GB/s\"", "\"-1GB/s\"", "\"nanGB/s\"",
                                    "\"1e308TB/s\"", "\"fast\"", "true", "[]"})
        EXPECT_EQ(refusal(with(std::string("[[topology.level]]\nbandwidth = ") + value)),
                  "x.toml:5:13: topology.level.bandwidth must be a positive bandwidth such as \"12.5GiB/s\", "
                  "\"200Mbit/s\" or a number of bytes per second")
            << value;
}

void expect_same(Machine const& a, Machine const& b)
{
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.cores, b.cores);
    EXPECT_EQ(a.hosts, b.hosts);
    EXPECT_EQ(a.settings, b.settings);
    EXPECT_EQ(a.topology->kind(), b.topology->kind());
    EXPECT_EQ(a.topology->dimensions(), b.topology->dimensions());
    int const nodes = a.topology->nodes();
    ASSERT_EQ(nodes, b.topology->nodes());
    for (int from = 0; from < nodes; from += 1 + nodes / 50)
        for (int to = 0; to < nodes; ++to) EXPECT_EQ(a.topology->hops(from, to), b.topology->hops(from, to));
    ASSERT_EQ(a.topology->levels().size(), b.topology->levels().size());
    for (std::size_t i = 0; i < a.topology->levels().size(); ++i) {
        EXPECT_EQ(a.topology->levels()[i].name, b.topology->levels()[i].name);
        EXPECT_EQ(a.topology->levels()[i].latency_s, b.topology->levels()[i].latency_s);
        EXPECT_EQ(a.topology->levels()[i].bandwidth, b.topology->levels()[i].bandwidth);
    }
    EXPECT_EQ(a.gateways.nodes, b.gateways.nodes);
    EXPECT_EQ(a.gateways.block, b.gateways.block);
    EXPECT_EQ(a.gateways.hops, b.gateways.hops);
    EXPECT_EQ(a.gateways.link.latency_s, b.gateways.link.latency_s);
    EXPECT_EQ(a.gateways.link.bandwidth, b.gateways.link.bandwidth);
    EXPECT_EQ(a.gateways.block_bandwidth, b.gateways.block_bandwidth);
    EXPECT_EQ(a.gateways.servers, b.gateways.servers);
    EXPECT_EQ(a.gateways.through, b.gateways.through);
    ASSERT_EQ(a.tiers.size(), b.tiers.size());
    for (std::size_t i = 0; i < a.tiers.size(); ++i) {
        EXPECT_EQ(a.tiers[i].name, b.tiers[i].name);
        EXPECT_EQ(a.tiers[i].kind, b.tiers[i].kind);
        EXPECT_EQ(a.tiers[i].place, b.tiers[i].place);
        EXPECT_EQ(a.tiers[i].latency_s.value, b.tiers[i].latency_s.value);
        EXPECT_EQ(a.tiers[i].write_bandwidth.value, b.tiers[i].write_bandwidth.value);
        EXPECT_EQ(a.tiers[i].write_bandwidth.origin, b.tiers[i].write_bandwidth.origin);
        EXPECT_EQ(a.tiers[i].read_bandwidth.value, b.tiers[i].read_bandwidth.value);
        EXPECT_EQ(a.tiers[i].capacity_bytes.value, b.tiers[i].capacity_bytes.value);
        EXPECT_EQ(a.tiers[i].persistency, b.tiers[i].persistency);
    }
    ASSERT_EQ(a.storage.has_value(), b.storage.has_value());
    if (!a.storage) return;
    EXPECT_EQ(a.storage->name, b.storage->name);
    EXPECT_EQ(a.storage->block_bytes, b.storage->block_bytes);
    EXPECT_EQ(a.storage->stripe_bytes, b.storage->stripe_bytes);
    EXPECT_EQ(a.storage->stripe_count, b.storage->stripe_count);
    EXPECT_EQ(a.storage->write_streams, b.storage->write_streams);
    EXPECT_EQ(a.storage->read_streams, b.storage->read_streams);
    EXPECT_EQ(a.storage->write_bw, b.storage->write_bw);
    EXPECT_EQ(a.storage->contended_write_bw, b.storage->contended_write_bw);
    EXPECT_EQ(a.storage->read_bw, b.storage->read_bw);
    EXPECT_EQ(a.storage->remote, b.storage->remote);
    EXPECT_EQ(a.storage->each_node, b.storage->each_node);
    EXPECT_EQ(a.storage->share_nodes, b.storage->share_nodes);
}

TEST(Platform, IsGivenBackByItsText)
{
    std::vector<Machine> machines;
    for (auto const& name : shipped_platforms()) machines.push_back(shipped(name));
    machines.push_back(parsed(topology("kind = \"fat_tree\"\nswitches = [[[0, 4], [2]], 3, 1]")));
    machines.push_back(parsed(topology("kind = \"fat_tree\"\nswitches = [[[[\"b\", \"a\"]], \"c\"]]")));
    machines.push_back(parsed("name = \"a \\\"b\\\" \\u0001 \\\\\"\nhosts = \"b,a\"\n" +
                              topology("kind = \"fat_tree\"\nswitches = [[\"a\"], [\"b\"]]")));
    machines.push_back(
        parsed(with("[gateways]\nnodes = [1]\nhops = [4, 3, 2, 1]\n[settings]\na = 'x'\n\"b c\" = true\n"
                    "[[tier]]\nname = 'numa:2'\nbandwidth = 0.3\norigin = 'measured'")));
    for (auto const& machine : machines) {
        auto const text = to_toml(machine);
        auto const again = parse_platform(text, "y.toml");
        ASSERT_TRUE(again) << again.error().text << '\n' << text;
        expect_same(machine, *again);
    }
}

TEST(Shipped, AllParseAndSayWhatTheyAre)
{
    EXPECT_EQ(shipped_platforms(),
              (Strings{"cooley", "fat-tree", "laptop", "mira", "paper-toy", "theta", "theta-paper"}));
    for (auto const& name : shipped_platforms()) EXPECT_EQ(shipped(name).name, name);
}

TEST(Shipped, MiraHasTwoBridgesInEveryPset)
{
    auto const mira = shipped("mira");
    EXPECT_EQ(mira.topology->nodes(), 4096);
    EXPECT_EQ(mira.gateways.nodes.size(), 64U);
    EXPECT_EQ(mira.gateways.hops[32], 1);
    EXPECT_EQ(mira.gateways.hops[33], 2);
    EXPECT_EQ(mira.gateways.hops[96], 1);
    std::vector<int> served(64, 0);
    for (int const gateway : mira.gateways.through) ++served[static_cast<std::size_t>(gateway)];
    EXPECT_EQ(served, std::vector<int>(64, 64)) << "each has half of its Pset";
    EXPECT_EQ(mira.storage->block_bytes, 8 << 20);
    EXPECT_DOUBLE_EQ(mira.gateways.block_bandwidth * 8, 22.4e9) << "the papers' peak of 1,024 nodes";
    EXPECT_DOUBLE_EQ(mira.storage->contended_write_bw, mira.gateways.block_bandwidth) << "of one Pset";
    EXPECT_EQ(mira.storage->share_nodes, 128);
}

TEST(Gateways, ThePassageIsThatOfTheBusiestGatewayOrBlock)
{
    // Eight nodes in a ring, two blocks of four with two gateways each.
    auto const machine = parsed(topology("kind = \"torus\"\ndimensions = [8]") +
                                "[gateways]\nblock = 4\nper_block = [0, 2]\nbandwidth = \"2GB/s\"\n"
                                "block_bandwidth = \"3GB/s\"\n");
    // Node 1 is as near to 0 as to 2: whichever has fewer nodes. Node 3 is nearer to none; 7 likewise in its block.
    EXPECT_EQ(machine.gateways.through, (Ints{0, 0, 1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(machine.gateways.hops, (Ints{1, 2, 1, 2, 1, 2, 1, 2}));
    std::vector<double> bytes{1e9, 3e9, 1e9, 0, 0, 0, 0, 2e9};
    auto const uneven = passage(machine, bytes, 0);
    EXPECT_EQ(uneven.most_bytes, 4e9) << "nodes 0 and 1";
    EXPECT_EQ(uneven.most_block_bytes, 5e9);
    EXPECT_EQ(uneven.used, 3);
    EXPECT_DOUBLE_EQ(uneven.seconds, 4.0 / 2) << "one gateway's link is slower than the block's 5 / 3";
    bytes = {3e9, 0, 3e9, 0, 0, 0, 0, 0};
    EXPECT_DOUBLE_EQ(passage(machine, bytes, 0).seconds, 6.0 / 3) << "two links of 2 GB/s, but 3 GB/s for the block";
}

TEST(Gateways, OfServersShareWhatIsOnThem)
{
    // Three servers: the first behind nodes 1 and 3, the second behind 3, the third behind 5.
    auto const machine = parsed(topology("kind = \"torus\"\ndimensions = [8]") +
                                "[gateways]\nnodes = [1, 3, 5]\nservers = [[1, 3], [3], [5]]\nbandwidth = \"1GB/s\"\n");
    EXPECT_EQ(io_nodes(machine.gateways, 1), (Ints{0, 1})) << "IONodesPerFile of a file on the first server";
    EXPECT_EQ(io_nodes(machine.gateways, 0), (Ints{0, 1, 2}));
    EXPECT_EQ(io_distance(machine, 0, 1), 4) << "DistanceToIONode: three links to node 3, and on from there";
    EXPECT_EQ(io_distance(machine, 7, 0), 3);
    std::vector<double> const bytes(8, 0.75e9);  // 6 GB
    auto const all = passage(machine, bytes, 3);
    EXPECT_DOUBLE_EQ(all.most_bytes, 1e9 + 2e9) << "node 3: half of the first server's third, all of the second's";
    EXPECT_DOUBLE_EQ(all.seconds, 3);
    auto const one = passage(machine, bytes, 1);
    EXPECT_DOUBLE_EQ(one.most_bytes, 3e9) << "one server: its two gateways take turns";
    EXPECT_EQ(one.used, 2);
}

TEST(Gateways, ThatAreUnknownAreFree)
{
    auto const machine = parsed(topology("kind = \"torus\"\ndimensions = [8]"));
    EXPECT_EQ(passage(machine, std::vector<double>(8, 1e9), 0).seconds, 0);
    auto const distances = parsed(topology("kind = \"torus\"\ndimensions = [4]") +
                                  "[gateways]\nhops = [1, 2, 3, 2]\nbandwidth = \"1GB/s\"\n");
    EXPECT_EQ(passage(distances, std::vector<double>{1e9, 2e9, 0, 0}, 0).seconds, 2) << "each node has its own way";
}

TEST(Shipped, ThetaHasThreeTiersAndNoKnownGateways)
{
    auto const theta = shipped("theta");
    EXPECT_EQ(theta.topology->nodes(), 3456);
    EXPECT_TRUE(theta.gateways.hops.empty());
    ASSERT_EQ(theta.tiers.size(), 3U);
    EXPECT_EQ(theta.tiers[0].name, "hbm");
    EXPECT_EQ(theta.tiers[2].capacity_bytes.value, 128.0 * core::GiB);
    EXPECT_EQ(theta.storage->stripe_count, 48);
}

TEST(Shipped, TheToyHasThePapersDistancesAndFigures)
{
    auto const toy = shipped("paper-toy");
    for (int node = 0; node < 4; ++node) {
        int sum = 0;
        for (int other = 0; other < 4; ++other) sum += toy.topology->distance(node, other);
        EXPECT_EQ(sum, (Ints{16, 13, 19, 14}[node]));
    }
    EXPECT_EQ(toy.gateways.hops, (Ints{3, 2, 5, 2}));
    EXPECT_EQ(toy.tiers[2].write_bandwidth.value, 0.15 * 1073741824);
    EXPECT_EQ(toy.tiers[2].persistency, Persistency::job);
}

TEST(Shipped, ANameThatIsNotShippedGetsTheNearest)
{
    auto const text = read_platform("thetta");
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().text,
              "platform 'thetta' is not shipped: did you mean 'theta'? There are cooley, fat-tree, laptop, mira, "
              "paper-toy, theta, theta-paper; to use a file of your own, give its path");
}

TEST(Shipped, APathIsReadAsItIs)
{
    std::ofstream("own.toml") << flat4;
    auto const own = read_platform("own.toml");
    ASSERT_TRUE(own);
    EXPECT_EQ(own->text, flat4);
    EXPECT_EQ(own->path, "own.toml");
    EXPECT_TRUE(read_platform("./own.toml"));
    auto const none = read_platform("none.toml");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().text, "platform file none.toml: No such file or directory");
    EXPECT_EQ(none.error().code, Errc::not_found);
    EXPECT_FALSE(read_platform("./"));
    std::filesystem::remove("own.toml");
}

}  // namespace
}  // namespace tapioca::machine
