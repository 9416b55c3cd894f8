// Tiers: what a requested name means, what is found on described machines, what is free, and the errors of full or
// missing places.
#include "machine/tier/tier.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/units.hpp"
#include "machine/tier/free.hpp"
#include "support/setting.hpp"

namespace tapioca::machine {
namespace {

namespace fs = std::filesystem;
using test::Setting;

/// A tmpfs of its own in the working directory, until the end of the scope.
class Mounted {
public:
    Mounted(char const* name, unsigned long flags, char const* options) : path_(fs::current_path() / name)
    {
        fs::create_directories(path_);
        error_ = ::mount("tmpfs", path_.c_str(), "tmpfs", flags, options) == 0 ? 0 : errno;
    }
    Mounted(Mounted const&) = delete;
    Mounted& operator=(Mounted const&) = delete;
    ~Mounted()
    {
        if (error_ == 0) ::umount2(path_.c_str(), MNT_DETACH);
    }
    [[nodiscard]] std::string const& path() const { return path_; }
    [[nodiscard]] int error() const { return error_; }

private:
    std::string path_;
    int error_;
};

TierTraits tier(std::string name, std::string kind, std::string place = "")
{
    TierTraits traits{std::move(name), std::move(kind), std::move(place), {1}, {2}, {3}, {}, Persistency::none};
    traits.latency_s.origin = Origin::platform;
    return traits;
}

std::vector<TierTraits> const plain = {tier("dram", "dram")};
std::vector<TierTraits> const rich = {tier("hbm", "numa", "1,3"), tier("dram", "dram"), tier("nvr", "ssd", "/nvr")};

std::string refusal(std::string const& wish, std::vector<TierTraits> const& tiers)
{
    auto const traits = choose_tier(wish, tiers);
    if (traits) return "";
    EXPECT_EQ(traits.error().code, Errc::setting);
    return traits.error().text;
}

TEST(ChooseTier, TakesThoseThereAreByName)
{
    EXPECT_EQ(choose_tier("hbm", rich)->place, "1,3");
    EXPECT_EQ(choose_tier("nvr", rich)->kind, "ssd");
    EXPECT_EQ(choose_tier("dram", plain)->kind, "dram");
}

TEST(ChooseTier, TakesAPlaceAfterAColon)
{
    auto const ssd = choose_tier("ssd:/tmp", plain);
    ASSERT_TRUE(ssd);
    EXPECT_EQ(ssd->name, "ssd:/tmp");
    EXPECT_EQ(ssd->kind, "ssd");
    EXPECT_EQ(ssd->place, "/tmp");
    EXPECT_EQ(ssd->persistency, Persistency::job);
    EXPECT_EQ(ssd->latency_s.origin, Origin::assumed);
    EXPECT_GT(ssd->capacity_bytes.value, 0);
    EXPECT_EQ(choose_tier("numa:2", plain)->place, "2");
    EXPECT_EQ(choose_tier("numa:1,3", plain)->place, "1,3");
}

TEST(ChooseTier, KnowsAPlaceByTheTierItBelongsTo)
{
    EXPECT_EQ(choose_tier("numa:3", rich)->latency_s.origin, Origin::platform);
    EXPECT_EQ(choose_tier("numa:3", rich)->place, "3");
    EXPECT_EQ(choose_tier("numa:2", rich)->latency_s.origin, Origin::assumed);
    auto const other = choose_tier("nvr:/tmp", rich);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->place, "/tmp");
    EXPECT_EQ(other->latency_s.origin, Origin::platform);
}

TEST(ChooseTier, SaysWhatIsWrongWithAWish)
{
    EXPECT_EQ(refusal("hbm", plain), "this node has no hbm: it has dram");
    EXPECT_EQ(refusal("hmb", rich), "unknown tier hmb: did you mean hbm? This node has hbm, dram, nvr");
    EXPECT_EQ(refusal("HBM", rich), "unknown tier HBM: did you mean hbm? This node has hbm, dram, nvr");
    EXPECT_EQ(refusal("floppy", plain), "unknown tier floppy: this node has dram");
    EXPECT_EQ(refusal("floppy:/a", plain), "unknown tier floppy:/a: this node has dram");
    EXPECT_EQ(refusal("/scratch", plain), "tier /scratch: say what the directory is on, as in ssd:/scratch");
    EXPECT_EQ(refusal("ssd", plain), "tier ssd: expected an absolute directory such as /scratch after ssd:");
    EXPECT_EQ(refusal("ssd:", plain), "tier ssd:: expected an absolute directory such as /scratch after ssd:");
    EXPECT_EQ(refusal("ssd:here", plain), "tier ssd:here: expected an absolute directory such as /scratch after ssd:");
    EXPECT_EQ(refusal("dram:0", plain), "tier dram:0: dram takes no place after a colon: write dram");
    for (auto const* const wish : {"numa", "numa:", "numa:x", "numa:1,", "numa:,1", "numa:-1", "numa:1 ", "numa:99999"})
        EXPECT_EQ(refusal(wish, plain), fmt::format("tier {}: expected a NUMA node such as 1 after numa:", wish));
}

std::string make_refusal(TierTraits const& traits)
{
    auto const made = make_tier(traits);
    return made ? "" : made.error().text;
}

TEST(MakeTier, SaysWhatIsWrongWithADirectory)
{
    EXPECT_EQ(make_refusal(tier("ssd", "ssd", "/nope")),
              "ssd tier: /nope: No such file or directory: create it or name another directory, as in ssd:/dir");
    std::ofstream("file") << "x";
    auto const file = fs::current_path() / "file";
    EXPECT_EQ(make_refusal(tier("ssd", "ssd", file)), fmt::format("ssd tier: {}: Not a directory: remove it or name "
                                                                  "another directory, as in ssd:/dir",
                                                                  file.string()));
}

TEST(MakeTier, WantsADirectoryThatCanBeWrittenTo)
{
    Mounted const sealed("sealed", MS_RDONLY, "");
    if (sealed.error() != 0) GTEST_SKIP() << "mount: " << std::strerror(sealed.error());
    EXPECT_EQ(make_refusal(tier("ssd", "ssd", sealed.path())),
              fmt::format("ssd tier: {}: Read-only file system: make it writable or name another directory, "
                          "as in ssd:/dir",
                          sealed.path()));
}

TEST(MakeTier, SaysWhichNumaNodesThereAre)
{
    auto const text = make_refusal(tier("hbm", "numa", "4000"));
    EXPECT_TRUE(text.starts_with("hbm tier: this node has no NUMA node 4000: it has 0")) << text;
    EXPECT_TRUE(make_refusal(tier("hbm", "numa", "x")).starts_with("hbm tier: this node has no NUMA node x: it has 0"));
    EXPECT_EQ(make_refusal(tier("tape", "tape")), "tier tape: unknown kind tape");
}

TEST(MakeTier, FindsTheNumaNodesThatAPlatformLeavesOut)
{
    EXPECT_EQ(make_refusal(tier("odd", "numa")),
              "odd tier: hwloc finds no odd on this node: name its NUMA nodes, such "
              "as TAPIOCA_AGGRTIER=numa:1");
    Setting const xml("HWLOC_XMLFILE", GOLDEN "/dram_hbm_nvm.xml");
    auto const made = make_tier(tier("hbm", "numa"));
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ((*made)->traits().place, "1,4");
}

TEST(MakeTier, ABindingThatTheSystemRefusesIsAnError)
{
    // Described as this system, which it is not: node 5 is not there to be bound to.
    Setting const xml("HWLOC_XMLFILE", GOLDEN "/dram_hbm_nvm.xml");
    Setting const here("HWLOC_THISSYSTEM", "1");
    if (node_free_bytes(5)) GTEST_SKIP() << "this machine has a NUMA node 5";
    auto nvm = tier("nvm", "numa", "5");
    nvm.capacity_bytes.value = 1e12;
    auto const made = make_tier(nvm);
    ASSERT_TRUE(made) << made.error().text;
    auto const mapping = (*made)->create(core::MiB);
    ASSERT_FALSE(mapping);
    EXPECT_TRUE(mapping.error().text.starts_with("nvm tier: the system refuses to bind memory to NUMA node 5: "))
        << mapping.error().text;
}

TEST(NumaTier, PagesLieOnTheNodeAndThePolicyWithTheFile)
{
    auto const made = make_tier(tier("numa:0", "numa", "0"));
    ASSERT_TRUE(made) << made.error().text;
    auto const mapping = (*made)->create(8 * core::MiB);
    ASSERT_TRUE(mapping) << mapping.error().text;
    for (std::uint64_t at = 0; at < mapping->bytes(); at += core::MiB) {
        int node = -1;
        ASSERT_EQ(::syscall(SYS_get_mempolicy, &node, nullptr, 0, mapping->data() + at, MPOL_F_NODE | MPOL_F_ADDR), 0);
        EXPECT_EQ(node, 0);
    }
    auto const attached = (*made)->attach(mapping->name(), mapping->bytes());
    ASSERT_TRUE(attached);
    for (auto const* const data : {mapping->data(), attached->data()}) {
        int policy = -1;
        unsigned long nodes[64] = {};
        ASSERT_EQ(::syscall(SYS_get_mempolicy, &policy, nodes, 64 * 64, data, MPOL_F_ADDR), 0);
        EXPECT_EQ(policy & ~MPOL_MODE_FLAGS, MPOL_BIND);
        EXPECT_EQ(nodes[0], 1U);
    }
}

TEST(SsdTier, AFullDirectoryIsAnErrorNeverASignal)
{
    Mounted const small("small", 0, "size=4m");
    if (small.error() != 0) GTEST_SKIP() << "mount: " << std::strerror(small.error());
    auto const made = make_tier(tier("ssd", "ssd", small.path()));
    ASSERT_TRUE(made);
    {
        auto const first = (*made)->create(3 * core::MiB);
        ASSERT_TRUE(first) << first.error().text;
        auto const second = (*made)->create(2 * core::MiB);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, Errc::no_space);
        EXPECT_EQ(second.error().text,
                  fmt::format("ssd tier: 2 MiB in {}: No space left on device (1 MiB free): make room there, lower "
                              "TAPIOCA_BUFFERSIZE or TAPIOCA_MEMORY, or name another directory with "
                              "TAPIOCA_AGGRTIER=ssd:/dir",
                              small.path()));
        auto const third = (*made)->create(core::MiB);
        ASSERT_TRUE(third) << third.error().text;
        std::memset(first->data(), 1, first->bytes());
        std::memset(third->data(), 1, third->bytes());
    }
    EXPECT_TRUE(fs::is_empty(small.path()));
}

/// One line a tier, as in tests/golden/*.txt.
std::string describe_all(std::vector<TierTraits> const& tiers)
{
    std::string text;
    for (auto const& t : tiers)
        text += fmt::format(
            "{} kind={} place={} latency={:.0f}ns:{} write={:.1f}GB/s:{} read={:.1f}GB/s:{} "
            "capacity={}:{} persistency={}\n",
            t.name, t.kind, t.place, t.latency_s.value * 1e9, name(t.latency_s.origin), t.write_bandwidth.value / 1e9,
            name(t.write_bandwidth.origin), t.read_bandwidth.value / 1e9, name(t.read_bandwidth.origin),
            core::format_bytes(static_cast<std::uint64_t>(t.capacity_bytes.value)), name(t.capacity_bytes.origin),
            core::name(t.persistency));
    return text;
}

class Golden : public testing::TestWithParam<char const*> {};

TEST_P(Golden, TiersAreFound)
{
    auto const base = std::string(GOLDEN "/") + GetParam();
    Setting const xml("HWLOC_XMLFILE", base + ".xml");
    std::ostringstream expected;
    expected << std::ifstream(base + ".txt").rdbuf();
    EXPECT_EQ(describe_all(find_tiers()), expected.str());
}

INSTANTIATE_TEST_SUITE_P(Machines, Golden, testing::Values("captured_vm", "two_sockets", "knl", "dram_hbm_nvm", "cxl"),
                         [](auto const& instance) { return instance.param; });

TEST(FindTiers, HwlocsSyntheticMachinesCountToo)
{
    Setting const synthetic("HWLOC_SYNTHETIC",
                            "pack:1 [numa(memory=1073741824)] [numa(memory=2147483648)] core:2 pu:1");
    auto const tiers = find_tiers();
    ASSERT_EQ(tiers.size(), 2U);
    EXPECT_EQ(tiers[0].name, "dram");
    EXPECT_EQ(tiers[1].name, "numa:1");
    EXPECT_EQ(tiers[1].capacity_bytes.value, 2147483648.0);
}

TEST(FindTiers, DramIsAlwaysThereAndOfItOnlyWhatIsFree)
{
    auto const tiers = find_tiers();
    auto const dram = choose_tier("dram", tiers);
    ASSERT_TRUE(dram);
    EXPECT_EQ(dram->capacity_bytes.origin, Origin::measured);
    EXPECT_GT(dram->capacity_bytes.value, 0);
    EXPECT_LE(dram->capacity_bytes.value, static_cast<double>(directory_free_bytes("/dev/shm") + core::GiB));
}

/// A root with the files given.
class Tree {
public:
    explicit Tree(std::vector<std::pair<std::string, std::string>> const& files)
    {
        static int number = 0;
        root_ = fs::current_path() / fmt::format("tree{}", number++);
        fs::remove_all(root_);
        for (auto const& [name, text] : files) {
            auto const path = root_ + "/" + name;
            fs::create_directories(fs::path(path).parent_path());
            std::ofstream(path) << text;
        }
    }
    [[nodiscard]] std::string const& root() const { return root_; }

private:
    std::string root_;
};

TEST(FreeMemory, WithoutLimitsIsWithoutBounds)
{
    EXPECT_EQ(cgroup_free_bytes(Tree({}).root()), UINT64_MAX);
    Tree const open({{"proc/self/cgroup", "0::/job\n"},
                     {"sys/fs/cgroup/job/memory.max", "max\n"},
                     {"sys/fs/cgroup/job/memory.current", "5000\n"}});
    EXPECT_EQ(cgroup_free_bytes(open.root()), UINT64_MAX);
    EXPECT_EQ(available_memory(Tree({}).root()), UINT64_MAX);
}

TEST(FreeMemory, IsTheLeastOnTheWayUpThroughVersion2)
{
    Tree const tree({{"proc/self/cgroup", "0::/slice/job/step\n"},
                     {"sys/fs/cgroup/slice/memory.max", "10000\n"},
                     {"sys/fs/cgroup/slice/memory.current", "9000\n"},
                     {"sys/fs/cgroup/slice/memory.stat", "anon 500\nfile 800\ninactive_file 200\nactive_file 100\n"},
                     {"sys/fs/cgroup/slice/job/memory.max", "5000\n"},
                     {"sys/fs/cgroup/slice/job/memory.current", "1000\n"},
                     {"sys/fs/cgroup/slice/job/step/memory.max", "max\n"},
                     {"sys/fs/cgroup/slice/job/step/memory.current", "1000\n"}});
    EXPECT_EQ(cgroup_free_bytes(tree.root()), 1300U) << "of the slice, with its page cache";
}

TEST(FreeMemory, IsTheLeastOnTheWayUpThroughVersion1)
{
    Tree const tree({{"proc/self/cgroup", "9:cpu,memory:/slurm/job\n3:memoryish:/x\n0::/\n"},
                     {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                     {"sys/fs/cgroup/memory/memory.usage_in_bytes", "800\n"},
                     {"sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "1000\n"},
                     {"sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "700\n"},
                     {"sys/fs/cgroup/memory/slurm/job/memory.stat", "total_inactive_file 50\ninactive_file 9\n"},
                     {"sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n"},
                     {"sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1\n"}});
    EXPECT_EQ(cgroup_free_bytes(tree.root()), 350U);
}

TEST(FreeMemory, IsReadFromTheMountsRootInAContainer)
{
    Tree const tree({{"proc/self/cgroup", "4:memory:/docker/abc\n"},
                     {"sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"},
                     {"sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n"}});
    EXPECT_EQ(cgroup_free_bytes(tree.root()), 0U) << "more is used than allowed";
    Tree const hybrid({{"proc/self/cgroup", "0::/job\n"},
                       {"sys/fs/cgroup/unified/job/memory.max", "1000\n"},
                       {"sys/fs/cgroup/unified/job/memory.current", "400\n"}});
    EXPECT_EQ(cgroup_free_bytes(hybrid.root()), 600U);
}

TEST(FreeMemory, OfANodeCountsPageCache)
{
    Tree const tree({{"proc/meminfo", "MemTotal: 9 kB\nMemAvailable:      7 kB\n"},
                     {"sys/devices/system/node/node2/meminfo",
                      "Node 2 MemTotal:  100 kB\nNode 2 MemFree:  10 kB\nNode 2 Active(file): 2 kB\n"
                      "Node 2 Inactive(file): 3 kB\n"}});
    EXPECT_EQ(available_memory(tree.root()), 7 * core::KiB);
    EXPECT_EQ(node_free_bytes(2, tree.root()), 15 * core::KiB);
    EXPECT_EQ(node_free_bytes(1, tree.root()), std::nullopt);
    EXPECT_EQ(directory_free_bytes("/nope"), std::uint64_t{1} << 62);
}

}  // namespace
}  // namespace tapioca::machine
