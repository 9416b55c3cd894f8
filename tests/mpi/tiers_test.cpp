// Buffers on every tier: the file is the same wherever they are; the tier that the model elects; and tiers that fail.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <hwloc.h>
#include <sys/mount.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "support/mpi_test.hpp"
#include "support/setting.hpp"

namespace tapioca::test {
namespace {

using Json = nlohmann::json;

/// A communicator of its own, since the first file on one decides about its nodes.
class Comm {
public:
    Comm() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }
    Comm(Comm const&) = delete;
    Comm& operator=(Comm const&) = delete;
    ~Comm() { MPI_Comm_free(&comm_); }
    operator MPI_Comm() const { return comm_; }  // NOLINT: used as one

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

/// hwloc's description of this machine, in which NUMA node 0 is high-bandwidth memory.
class PretendedHbm {
public:
    explicit PretendedHbm(Scratch const& scratch)
        : file_(scratch.path("hbm.xml")), xml_("HWLOC_XMLFILE", file_), here_("HWLOC_THISSYSTEM", "1")
    {
        if (rank() == 0) {
            ::unsetenv("HWLOC_XMLFILE");
            hwloc_topology_t topology = nullptr;
            hwloc_topology_init(&topology);
            hwloc_topology_load(topology);
            auto* const node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, 0);
            node->subtype = ::strdup("HBM");
            hwloc_topology_export_xml(topology, file_.c_str(), 0);
            hwloc_topology_destroy(topology);
            ::setenv("HWLOC_XMLFILE", file_.c_str(), 1);
        }
        barrier();
    }

private:
    std::string file_;
    Setting xml_, here_;
};

struct Setup {
    char const* tier;  ///< "ssd" stands for one in the test's directory
    int per_node;      ///< 0: one node
    char const* transport;
};

void PrintTo(Setup const& setup, std::ostream* out)
{
    *out << setup.tier << ' ' << setup.per_node << ' ' << setup.transport;
}

class OnTier : public testing::TestWithParam<Setup> {};

/// Small blocks in turn, then a large piece of every rank.
constexpr std::int64_t block = 5000, blocks = 150, large = 400'000;

Pattern pattern_of(int of_rank)
{
    Pattern pattern;
    pattern.add(Subarray{{blocks, ranks() * block}, {0, of_rank * block}, {blocks, block}, {}, 1, 0});
    pattern.add({{blocks * block * ranks() + of_rank * large, large}});
    return pattern;
}

std::vector<std::byte> expected_file(std::uint64_t seed)
{
    std::vector<std::byte> image(static_cast<std::size_t>((blocks * block + large) * ranks()));
    for (int r = 0; r < ranks(); ++r) {
        auto const small = stream(seed + static_cast<std::uint64_t>(r), blocks * block);
        for (std::int64_t i = 0; i < blocks; ++i)
            std::copy_n(small.begin() + i * block, block, image.begin() + (i * ranks() + r) * block);
        auto const piece = stream(seed + 100 + static_cast<std::uint64_t>(r), large);
        std::copy(piece.begin(), piece.end(), image.begin() + blocks * block * ranks() + r * large);
    }
    return image;
}

TEST_P(OnTier, TheFileIsTheSameAndReadsBack)
{
    auto const& [tier, per_node, transport] = GetParam();
    if (per_node > 0 && ranks() < 2 * per_node) GTEST_SKIP() << "needs two nodes";
    Scratch const scratch;
    PretendedHbm const hbm(scratch);
    Options options;
    options.aggrtier = std::string(tier) == "ssd" ? "ssd:" + scratch.directory() : tier;
    options.direct = Direct::never;
    options.nbaggr = std::min(3, ranks());
    options.transport = transport;
    if (per_node > 0) options.ranks_per_node = per_node;
    Comm const comm;
    auto const path = scratch.path("file");
    for (std::uint64_t const buffersize : {1 << 16, 1 << 20}) {  // in the larger the large pieces fit as a whole
        options.buffersize = buffersize;
        auto file = File::open(comm, path, Mode::create, options);
        auto step = file.declare(pattern_of(rank()));
        for (std::uint64_t run = 0; run < 3; ++run) {
            auto const me = static_cast<std::uint64_t>(rank());
            auto const small = stream(run * 1000 + me, blocks * block);
            auto const piece = stream(run * 1000 + 100 + me, large);
            step.write(0, small);
            step.write(1, piece);
            step.finish();
            barrier();
            EXPECT_TRUE(contents(path) == expected_file(run * 1000)) << "run " << run;
            std::vector<std::byte> back(small.size());
            std::vector<std::byte> large_back(piece.size());
            step.read(0, back);
            step.read(1, large_back);
            step.finish();
            EXPECT_TRUE(back == small && large_back == piece) << "run " << run;
        }
        auto const plan = Json::parse(step.plan().json());
        for (auto const* const way : {"write", "read"}) {
            EXPECT_EQ(plan[way]["tiers"], Json::array({*options.aggrtier})) << plan.dump();
            if (per_node > 0) {
                EXPECT_EQ(plan[way]["network"]["transport"], transport) << plan.dump();
            }
        }
        file.close();
    }
    barrier();
    if (rank() == 0) {
        for (auto const& entry : std::filesystem::directory_iterator(scratch.directory()))
            EXPECT_TRUE(entry.path().filename() == "file" || entry.path().filename() == "hbm.xml") << entry.path();
    }
    barrier();
}

INSTANTIATE_TEST_SUITE_P(Each, OnTier,
                         testing::Values(Setup{"dram", 0, "p2p"}, Setup{"hbm", 0, "p2p"}, Setup{"ssd", 0, "p2p"},
                                         Setup{"dram", 2, "p2p"}, Setup{"hbm", 2, "p2p"}, Setup{"ssd", 2, "p2p"},
                                         Setup{"dram", 2, "rma"}, Setup{"hbm", 2, "rma"}, Setup{"ssd", 2, "rma"}),
                         [](auto const& instance) {
                             auto const& setup = instance.param;
                             return std::string(setup.tier) +
                                    (setup.per_node == 0 ? "OnOneNode" : std::string("AcrossNodes_") + setup.transport);
                         });

/// The papers' toy machine with its tiers as large as given, on which the four ranks are the four processes.
void expect_elected(std::string const& hbm, std::string const& dram, std::string const& wanted)
{
    Scratch const scratch;
    PretendedHbm const pretended(scratch);
    auto const platform = scratch.path("toy.toml");
    if (rank() == 0)
        std::ofstream(platform) << R"(name = "toy"
[topology]
kind = "matrix"
distances = [[0, 5, 7, 4], [5, 0, 5, 3], [7, 5, 0, 7], [4, 3, 7, 0]]
[[topology.level]]
name = "network"
latency = "30ms"
bandwidth = "12.5GiB/s"
[gateways]
hops = [3, 2, 5, 2]
latency = "30ms"
bandwidth = "12.5GiB/s"
[[tier]]
name = "hbm"
latency = "10ms"
bandwidth = "180GiB/s"
capacity = ")" << hbm << R"("
[[tier]]
name = "dram"
latency = "20ms"
bandwidth = "90GiB/s"
capacity = ")" << dram << R"("
[[tier]]
name = "nvr"
kind = "ssd"
directory = ")" << scratch.directory()
                                << R"("
latency = "100ms"
bandwidth = "0.15GiB/s"
capacity = "128GiB"
persistency = "job"
)";
    barrier();
    Options options;
    options.platform = platform;
    options.model = "paper-2024";
    options.strategy = "TOPOLOGY_AWARE";
    options.direct = Direct::never;
    options.nbaggr = 1;
    options.buffers = 3;
    options.buffersize = 16 << 20;
    options.ranks_per_node = 1;
    options.report = scratch.path("report.json");
    Comm const comm;
    auto file = File::open(comm, scratch.path("file"), Mode::create, options);
    std::vector<std::int64_t> const megabytes = {10, 50, 20, 5};
    std::int64_t offset = 0;
    for (int r = 0; r < rank(); ++r) offset += megabytes[static_cast<std::size_t>(r)] << 20;
    auto const bytes = megabytes[static_cast<std::size_t>(rank())] << 20;
    Pattern pattern;
    pattern.add({{offset, bytes}});
    auto step = file.declare(pattern);
    auto const data = stream(static_cast<std::uint64_t>(rank()), static_cast<std::size_t>(bytes));
    step.write(0, data);
    step.finish();
    auto const place = Json::parse(step.plan().json())["write"]["places"][0];
    EXPECT_EQ(place["node"], 1) << place.dump();
    EXPECT_EQ(place["tier"], wanted) << place.dump();
    expect_parts(step.plan().explain(), {"in " + wanted, "placed by TOPOLOGY_AWARE with model paper-2024 on toy"});
    file.close();
    barrier();
    std::ifstream report(scratch.path("report.json"));
    if (rank() == 0) {
        EXPECT_EQ(Json::parse(report)["files"][0]["plans"][0]["write"]["places"][0]["tier"], wanted);
        auto const whole = contents(scratch.path("file"));
        EXPECT_EQ(whole.size(), std::size_t{85} << 20);
    }
    EXPECT_TRUE([&] {
        std::ifstream in(scratch.path("file"), std::ios::binary);
        in.seekg(offset);
        std::vector<std::byte> back(static_cast<std::size_t>(bytes));
        in.read(reinterpret_cast<char*>(back.data()), bytes);
        return back == data;
    }());
    barrier();
}

TEST(Toy, BuffersAreWhereTheModelElectsThem)
{
    if (ranks() != 4) GTEST_SKIP() << "needs four ranks";
    expect_elected("16GiB", "192GiB", "hbm");
    expect_elected("32MiB", "192GiB", "dram");
    expect_elected("32MiB", "32MiB", "nvr");
}

Caught open_error(Scratch const& scratch, Options const& options)
{
    Comm const comm;
    return same_error_on_all_ranks([&] { (void)File::open(comm, scratch.path("file"), Mode::create, options); });
}

TEST(Tier, ThatDoesNotExistIsOneLineThatSaysWhatThereIs)
{
    Scratch const scratch;
    Options options;
    options.aggrtier = "drum";
    expect_parts(open_error(scratch, options).text, {"unknown tier drum", "did you mean dram", "This node has dram"});
    options.aggrtier = "hbm";
    expect_parts(open_error(scratch, options).text, {"this node has no hbm", "dram"});
    options.aggrtier = "ssd:" + scratch.path("nowhere");
    expect_parts(open_error(scratch, options).text, {"nowhere", "No such file or directory", "name another directory"});
    options.aggrtier = "numa:9999";
    expect_parts(open_error(scratch, options).text, {"9999"});
    expect_next_file_works(scratch);
}

TEST(Tier, ThatDoesNotExistLeavesTheFileAsItWas)
{
    Scratch const scratch;
    auto const before = stream(3, 1000);
    if (rank() == 0) write_plain(scratch.path("file"), before);
    barrier();
    Options options;
    options.aggrtier = "drum";
    (void)open_error(scratch, options);
    options.aggrtier.reset();
    options.platform = "no-such-machine";
    (void)open_error(scratch, options);
    EXPECT_TRUE(contents(scratch.path("file")) == before);
    barrier();
}

TEST(Tiers, OfFilesOfOneCommunicatorMayDiffer)
{
    Scratch const scratch;
    PretendedHbm const hbm(scratch);
    Comm const comm;
    Options options;
    options.direct = Direct::never;
    options.buffersize = 16384;
    std::vector<File> files;
    std::vector<Step> steps;
    std::vector<std::string> const tiers = {"ssd:" + scratch.directory(), "dram", "hbm"};
    for (auto const& tier : tiers) {
        options.aggrtier = tier;
        files.push_back(File::open(comm, scratch.path("file" + std::to_string(files.size())), Mode::create, options));
        steps.push_back(files.back().declare(pattern_of(rank())));
    }
    for (std::uint64_t run = 0; run < 2; ++run)
        for (std::size_t f = 0; f < files.size(); ++f) {
            auto const seed = 1000 * (run * 3 + f);
            auto const me = static_cast<std::uint64_t>(rank());
            auto const small = stream(seed + me, blocks * block);
            auto const piece = stream(seed + 100 + me, large);
            steps[f].write(0, small);
            steps[f].write(1, piece);
            steps[f].finish();
            barrier();
            EXPECT_TRUE(contents(scratch.path("file" + std::to_string(f))) == expected_file(seed)) << tiers[f];
            EXPECT_EQ(Json::parse(steps[f].plan().json())["write"]["tiers"][0], tiers[f]);
            barrier();
        }
    for (auto& file : files) file.close();
}

TEST(Platform, ThatIsBadIsOneLineWithItsPlace)
{
    Scratch const scratch;
    auto const path = scratch.path("bad.toml");
    auto const refused = [&](std::string const& text) {
        if (rank() == 0) std::ofstream(path) << text;
        barrier();
        Options options;
        options.platform = path;
        auto const error = open_error(scratch, options);
        barrier();
        return error.text;
    };
    expect_parts(refused("name = \"x\n"), {"bad.toml:1:"});
    expect_parts(refused("[topology]\nkind = \"ring\"\nnodes = 4\n"), {"bad.toml:2:", "ring"});
    expect_parts(refused("[topology]\nkind = \"flat\"\nnodes = 4\n[[topology.level]]\nbandwidth = \"-1GB/s\"\n"),
                 {"bad.toml:5:", "bandwidth"});
    expect_parts(refused("hosts = \"elsewhere\"\n[topology]\nkind = \"flat\"\nnodes = 1\n"), {"elsewhere"});
    Options options;
    options.platform = "no-such-machine";
    expect_parts(open_error(scratch, options).text, {"no-such-machine"});
    expect_next_file_works(scratch);
}

TEST(Platform, GivesDefaultsThatCodeBeats)
{
    Scratch const scratch;
    auto const path = scratch.path("site.toml");
    if (rank() == 0)
        std::ofstream(path) << "name = \"site\"\n[topology]\nkind = \"flat\"\nnodes = 1000\n"
                               "[settings]\nbuffersize = \"128K\"\nbuffers = 3\ndirect = \"never\"\n";
    barrier();
    Options options;
    options.platform = path;
    options.buffers = 5;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    Pattern pattern;
    pattern.add({{rank() * 200'000, 200'000}});
    auto const plan = file.declare(pattern).plan();
    expect_parts(plan.explain(), {"5 buffers of 128 KiB", "buffersize=131072 (platform file)", "buffers=5 (code)"});
    file.close();
}

TEST(Platform, GivesNoSettingThatIsTheJobs)
{
    Scratch const scratch;
    for (std::string const setting : {"platform = \"laptop\"", "ranks_per_node = 1"}) {
        auto const path = scratch.path("site.toml");
        if (rank() == 0)
            std::ofstream(path) << "[topology]\nkind = \"flat\"\nnodes = 1000\n[settings]\n" << setting << "\n";
        barrier();
        Options options;
        options.platform = path;
        auto const name = setting.substr(0, setting.find(' '));
        expect_parts(open_error(scratch, options).text,
                     {"[settings] " + name + ": belongs to the job, not to the machine"});
    }
    expect_next_file_works(scratch);
}

TEST(Platform, GivesFiguresOfTheFileSystem)
{
    Scratch const scratch;
    auto const plan_with = [&](Options options) {
        options.direct = Direct::never;
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        Pattern pattern;
        pattern.add(Subarray{{5000, ranks() * 100}, {0, rank() * 100}, {5000, 100}, {}, 1, 0});
        auto const plan = Json::parse(file.declare(pattern).plan().json());
        file.close();
        return plan;
    };
    auto const before = plan_with({});
    auto const path = scratch.path("site.toml");
    if (rank() == 0)
        std::ofstream(path) << "name = \"site\"\n[topology]\nkind = \"flat\"\nnodes = 100\n[storage]\ntype = "
                            << before["file_system"] << "\nread_streams = 2\n";
    barrier();
    Options options;
    options.platform = path;
    auto const after = plan_with(options);
    auto const aggregators = [](Json const& plan) { return static_cast<int>(plan["read"]["aggregators"].size()); };
    EXPECT_EQ(aggregators(before), ranks());
    EXPECT_EQ(aggregators(after), std::min(2, ranks()));
}

/// A file system of its own, which is as small as asked for.
class SmallDisk {
public:
    explicit SmallDisk(std::string directory) : directory_(std::move(directory))
    {
        if (rank() == 0) {
            std::filesystem::create_directory(directory_);
            mounted_ = ::mount("tapioca-test", directory_.c_str(), "tmpfs", 0, "size=1m") == 0;
        }
        mounted_ = from_rank_0(mounted_ ? 1 : 0) == 1;
    }
    SmallDisk(SmallDisk const&) = delete;
    SmallDisk& operator=(SmallDisk const&) = delete;
    ~SmallDisk()
    {
        barrier();
        if (rank() == 0 && mounted_) ::umount(directory_.c_str());
    }
    [[nodiscard]] bool mounted() const { return mounted_; }

private:
    std::string directory_;
    bool mounted_ = false;
};

TEST(Tier, ThatIsFullIsAnErrorAndNotASignal)
{
    Scratch const scratch;
    SmallDisk const disk(scratch.path("disk"));
    if (!disk.mounted()) GTEST_SKIP() << "mounting is not permitted";
    Options options;
    options.aggrtier = "ssd:" + scratch.path("disk");
    options.direct = Direct::never;
    options.nbaggr = 1;
    options.buffersize = 65536;
    Comm const comm;
    auto file = File::open(comm, scratch.path("file"), Mode::create, options);
    auto const run = [&](Step& step) {
        auto const data = stream(1, 100'000);
        step.write(0, data);
        step.finish();
    };
    Pattern pattern;
    pattern.add({{rank() * 100'000, 99'990}, {(20 << 20) + rank() * 10, 10}});  // far enough for the largest buffers
    {
        auto step = file.declare(pattern);
        run(step);
    }
    // Somebody else fills it between two steps; the next needs larger buffers.
    if (rank() == 0) std::ofstream(scratch.path("disk/other")) << std::string(700'000, 'x');
    barrier();
    options.buffersize = 400'000;
    auto second = File::open(comm, scratch.path("second"), Mode::create, options);
    auto step = second.declare(pattern);
    auto const error = same_error_on_all_ranks([&] { run(step); });
    EXPECT_EQ(error.code, Errc::no_space);
    expect_parts(error.text, {"ssd", scratch.path("disk"), "No space left on device"});
    // What there was before is still good for smaller steps once there is room again.
    if (rank() == 0) std::filesystem::remove(scratch.path("disk/other"));
    barrier();
    auto again = file.declare(pattern);
    run(again);
    options.buffersize = 4 << 20;
    auto third = File::open(comm, scratch.path("third"), Mode::create, options);
    auto const refused = same_error_on_all_ranks([&] { (void)third.declare(pattern); });
    EXPECT_EQ(refused.code, Errc::memory);
    expect_parts(refused.text, {"an aggregator takes 8.5 MiB", "1 MiB free", "TAPIOCA_BUFFERSIZE"});
    file.close();
    second.close();
    third.close();
}

/// Buffers fit for one direction, and not for the other. Only rank 0 has data, and it does not wait for the others to
/// learn so.
TEST(Tier, WithoutRoomForReadingRefusesReadsWithOneErrorAndGoesOn)
{
    if (ranks() < 2) GTEST_SKIP() << "needs two ranks";
    Scratch const scratch;
    auto const platform = scratch.path("small.toml");
    if (rank() == 0)
        std::ofstream(platform) << R"(name = "small"
[topology]
kind = "flat"
nodes = 64
[[topology.level]]
name = "link"
latency = "1us"
bandwidth = "1GB/s"
[[tier]]
name = "ssd"
directory = ")" << scratch.directory()
                                << R"("
capacity = "3MiB"
)";
    barrier();
    Options options;
    options.platform = platform;
    options.aggrtier = "ssd";
    options.direct = Direct::never;
    options.nbaggr = 1;
    options.nbaggr_read = 2;
    options.buffersize = 1 << 20;
    options.buffers = 2;  // and readers of a node have their buffers in common
    Comm const comm;
    auto file = File::open(comm, scratch.path("file"), Mode::create, options);
    Pattern pattern;
    constexpr auto size = 3 << 20;
    pattern.add({{0, rank() == 0 ? size : 0}});
    auto step = file.declare(pattern);
    expect_parts(step.plan().explain(), {"read  refused: an aggregator takes", "3 MiB free"});
    EXPECT_EQ(step.plan().explain().find("every rank reads its own pieces"), std::string::npos);
    EXPECT_TRUE(Json::parse(step.plan().json())["read"].contains("refused"));
    auto const data = stream(1, rank() == 0 ? size : 0);
    for (int run = 0; run < 3; ++run) {
        std::vector<std::byte> back(data.size());
        if (rank() > 0) ::usleep(30'000);
        auto const refused = caught([&] {
            if (rank() == 0) step.read(0, back);
            run == 0 ? step.start() : (void)step.finish();
        });
        EXPECT_EQ(refused.code, Errc::memory) << refused.text;
        EXPECT_EQ(caught([&] {
                      if (rank() == 0) step.write(0, data);
                      step.finish();
                  }).text,
                  "");
        expect_same_on_all_ranks(refused);
    }
    file.close();
    barrier();
    EXPECT_TRUE(contents(scratch.path("file")) == stream(1, size));
    barrier();
}

}  // namespace
}  // namespace tapioca::test
