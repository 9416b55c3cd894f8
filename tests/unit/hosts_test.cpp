// A job's hosts: their lists, where they are in a machine, and the machine that their names and Slurm describe.
#include <gtest/gtest.h>

#include "machine/machine.hpp"

namespace tapioca::machine {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<int>;

Machine cluster(std::string const& size, std::string const& hosts = "")
{
    return parse_platform(hosts + "\n[topology]\nkind = \"flat\"\n" + size + '\n', "x.toml").value();
}

TEST(Hosts, ListsAreExpanded)
{
    auto const expanded = [](std::string_view list) { return expand_hosts(list).value(); };
    EXPECT_EQ(expanded("n[0-3,7],login"), (Texts{"n0", "n1", "n2", "n3", "n7", "login"}));
    EXPECT_EQ(expanded("n[08-10]"), (Texts{"n08", "n09", "n10"}));
    EXPECT_EQ(expanded("r[0-1]n[1-2].x"), (Texts{"r0n1.x", "r0n2.x", "r1n1.x", "r1n2.x"}));
    EXPECT_EQ(expanded("a,b"), (Texts{"a", "b"}));
    EXPECT_EQ(expanded("n[0-999999]").size(), 1000000U);
    for (auto const* const bad : {"", ",", "a,", "n[", "n]", "n[]", "n[1-]", "n[-1]", "n[3-1]", "n[a]", "n[0-1000000]",
                                  "n[0-999]m[0-9999]", "n[0-99999999999999999999]", "n 1", "n[1,]", "n\xe4"})
        EXPECT_FALSE(expand_hosts(bad)) << bad;
    EXPECT_EQ(expanded("n[18446744073709551615]"), (Texts{"n18446744073709551615"})) << "and comes to an end";
}

TEST(Hosts, NamesHaveALengthAndRefusalsAreOneLine)
{
    auto const zeros = std::string(255, '0');
    EXPECT_TRUE(expand_hosts(zeros));
    EXPECT_FALSE(expand_hosts(zeros + "0"));
    EXPECT_FALSE(expand_hosts("n[" + zeros + "-9]"));
    EXPECT_EQ(expand_hosts("a\n\tb").error().text,
              "host list 'a??b': a name must not contain blanks or characters other than ASCII");
}

TEST(Hosts, AreFoundByNameWithOrWithoutTheDomain)
{
    auto const machine = cluster("", "hosts = \"n[0-7]\"");
    EXPECT_EQ(find_hosts(machine, {"n3", "n0"}).value(), (Numbers{3, 0}));
    EXPECT_EQ(find_hosts(machine, {"n3.cluster.org"}).value(), (Numbers{3}));
    auto const domains = cluster("", "hosts = \"n0.a,n1.a,n1.b\"");
    EXPECT_EQ(find_hosts(domains, {"n0", "n1.b"}).value(), (Numbers{0, 2}));
    EXPECT_FALSE(find_hosts(domains, {"n1"}));  // which of them?
}

TEST(Hosts, AreTakenInOrderWhereTheMachineHasNoNames)
{
    EXPECT_EQ(find_hosts(cluster("nodes = 4"), {"a", "b", "c"}).value(), (Numbers{0, 1, 2}));
}

TEST(Hosts, ThatAreNotThereAreNamed)
{
    auto machine = cluster("", "hosts = \"n[0-7]\"");
    machine.name = "small";
    EXPECT_EQ(find_hosts(machine, {"n1", "m3"}).error().text,
              "host m3 of the job is not in small (n0, n1, n2, n3, ...)");
    EXPECT_EQ(find_hosts(machine, Texts(9, "n1")).error().text, "the job has 9 nodes, small has 8");
    machine.hosts.clear();
    EXPECT_EQ(find_hosts(machine, Texts(9, "n1")).error().text, "the job has 9 nodes, small has 8");
}

TEST(Slurm, WithoutItsHelpAJobsHostsAreFlat)
{
    auto const machine = describe_hosts({"a", "b"}, {}, "").value();
    EXPECT_EQ(machine.topology->kind(), "flat");
    EXPECT_EQ(machine.hosts, (Texts{"a", "b"}));
    EXPECT_EQ(machine.origin, "hosts' names; latency and bandwidth assumed");
    EXPECT_EQ(describe_hosts({"a", "b"}, {"a", "b"}, "").value().topology->kind(), "flat");
    EXPECT_EQ(describe_hosts({"a.x", "b.x"}, {"a.x", "b.x"}, "").value().topology->kind(), "flat");
    EXPECT_TRUE(describe_hosts({"a", "a"}, {}, "").value().hosts.empty());  // nodes that one host pretends to be
    EXPECT_FALSE(describe_hosts({}, {}, ""));
}

TEST(Slurm, AddressesBecomeATree)
{
    auto const machine = describe_hosts({"n1", "n2", "n3"}, {"root.s1.n1", "root.s2.n2", "root.s1.n3"}, "").value();
    EXPECT_EQ(machine.topology->kind(), "fat_tree");
    EXPECT_EQ(machine.topology->distance(0, 2), 2);
    EXPECT_EQ(machine.topology->distance(0, 1), 4);
    EXPECT_EQ(machine.origin, "Slurm's topology addresses; latency and bandwidth assumed");
}

TEST(Slurm, SwitchesAboveACommonOneAreInNobodysWay)
{
    auto const machine = describe_hosts({"n1", "n2"}, {"root.s1.n1", "root.s1.n2"}, "").value();
    EXPECT_EQ(machine.topology->kind(), "flat");
}

TEST(Slurm, UnevenTreesAreFilledUp)
{
    auto const machine = describe_hosts({"n0", "n1", "n2", "n3", "n4", "n5"},
                                        {"top.a.b.n0", "top.a.b.n1", "top.a.n2", "top.n3", "top.n4", "else.n5"}, "")
                             .value();
    EXPECT_EQ(machine.topology->levels().size(), 4U);
    EXPECT_EQ(machine.topology->distance(0, 1), 2);
    EXPECT_EQ(machine.topology->distance(0, 2), 4);
    EXPECT_EQ(machine.topology->distance(0, 3), 6);
    EXPECT_EQ(machine.topology->distance(3, 4), 2);
    EXPECT_EQ(machine.topology->distance(0, 5), 8);
}

TEST(Slurm, TopologyConfBecomesATree)
{
    std::string const conf =
        "# the machine's switches\n"
        "SwitchName=s0 Nodes=n[0-1] LinkSpeed=100\n"
        "switchname=s1   NODES=n[2-3]  # a comment\n"
        "SwitchName=s2 \\\n  Nodes=n4\n"
        "SWITCHNAME=m0 Switches=s[0-1]\n"
        "SwitchName=top Switches=m0,s2\n";
    auto const machine = describe_hosts({"n4.site", "n0", "n1", "n2"}, {}, conf).value();
    EXPECT_EQ(machine.topology->kind(), "fat_tree");
    EXPECT_EQ(machine.topology->distance(1, 2), 2);
    EXPECT_EQ(machine.topology->distance(1, 3), 4);
    EXPECT_EQ(machine.topology->distance(0, 1), 6);
    EXPECT_EQ(machine.origin, "Slurm's topology.conf; latency and bandwidth assumed");
    EXPECT_EQ(describe_hosts({"x", "y"}, {}, conf).value().topology->kind(), "flat");
    EXPECT_EQ(describe_hosts({"n0", "x"}, {}, conf).value().topology->kind(), "fat_tree");
    EXPECT_EQ(describe_hosts({"n0"}, {}, "BlockName=b Nodes=n0\n\n").value().topology->kind(), "flat");
}

TEST(Slurm, ABadTopologyConfIsPassedOverAndNamed)
{
    auto const bracket = describe_hosts({"n0"}, {}, "\nSwitchName=s Nodes=n[0\n").value();
    EXPECT_EQ(bracket.topology->kind(), "flat");
    EXPECT_EQ(bracket.origin,
              "hosts' names, topology.conf:2: host list 'n[0': a '[' without its ']'; latency and bandwidth assumed");
    auto const ring = describe_hosts({"n0"}, {}, "SwitchName=a Nodes=n0 Switches=b\nSwitchName=b Switches=a\n").value();
    EXPECT_EQ(ring.origin, "hosts' names, topology.conf: switch b is above itself; latency and bandwidth assumed");
    auto const many = describe_hosts({"n0"}, {},
                                     "SwitchName=a Nodes=a[0-999999]\nSwitchName=b Nodes=b[0-999999]\n"
                                     "SwitchName=c Nodes=c[0-999999]\n");
    EXPECT_NE(many.value().origin.find("topology.conf:3: more than 2000000 names in all"), std::string::npos);
}

TEST(Slurm, TreesTooDeepForAPlatformFileArePassedOver)
{
    std::string deep = "r";
    for (int i = 0; i < 15; ++i) deep += ".s" + std::to_string(i);
    auto const tree = describe_hosts({"n0", "n1"}, {"r.x.n0", deep + ".n1"}, "").value();
    EXPECT_EQ(tree.topology->kind(), "fat_tree");
    EXPECT_TRUE(parse_platform(to_toml(tree), "x.toml"));
    auto const flat = describe_hosts({"n0", "n1"}, {"r.x.n0", deep + ".t.n1"}, "").value();
    EXPECT_EQ(flat.topology->kind(), "flat");
    EXPECT_EQ(flat.origin, "hosts' names, 17 levels of switches are too many; latency and bandwidth assumed");
}

}  // namespace
}  // namespace tapioca::machine
