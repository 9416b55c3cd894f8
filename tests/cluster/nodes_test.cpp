// Several hosts, as made by tapioca-cluster: checks that they are separate hosts, and that files written and read
// across them are right. CLUSTER_SHARED and CLUSTER_HOSTS come from tapioca-cluster, CLUSTER_TEST_MB_S (the rate
// allowed between the first and the last rank) from CMakeLists.txt.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include "comm/team.hpp"
#include "machine/machine.hpp"
#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"
#include "workloads/hacc.hpp"

namespace tapioca::test {
namespace {

std::string setting(char const* name)
{
    auto const* const value = std::getenv(name);
    return value ? value : "";
}

int hosts()
{
    auto const names = setting("CLUSTER_HOSTS");
    return static_cast<int>(std::count(names.begin(), names.end(), ',')) + 1;
}

int last()
{
    return ranks() - 1;
}

TEST(Nodes, ShareMemoryOnlyWithinAHost)
{
    ASSERT_FALSE(setting("CLUSTER_HOSTS").empty()) << "run this under tapioca-cluster";
    comm::Team const team(MPI_COMM_WORLD);
    EXPECT_EQ(team.node_size(), ranks() / hosts());

    char mine[64] = {};
    gethostname(mine, sizeof mine - 1);
    std::vector<char> all(static_cast<std::size_t>(ranks()) * sizeof mine);
    MPI_Allgather(mine, sizeof mine, MPI_CHAR, all.data(), sizeof mine, MPI_CHAR, MPI_COMM_WORLD);
    std::set<std::string> names;
    for (std::size_t i = 0; i < all.size(); i += sizeof mine) names.insert(&all[i]);
    EXPECT_EQ(names.size(), static_cast<std::size_t>(hosts()));

    char first[64] = {};
    if (team.node_rank() == 0) std::copy(mine, mine + sizeof mine, first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, team.node());
    EXPECT_STREQ(mine, first) << "shares memory with another host";
}

/// MB/s of `bytes` from the first rank to the last; `move` returns when they have arrived. Collective.
template <class Move>
double rate(std::size_t bytes, Move move)
{
    barrier();
    auto const start = MPI_Wtime();
    move();
    barrier();
    auto const seconds = MPI_Wtime() - start;
    return static_cast<double>(bytes) / 1e6 / seconds;
}

TEST(Nodes, HaveNoWayAroundTheNetwork)
{
    double const allowed = std::atof(setting("CLUSTER_TEST_MB_S").c_str());
    ASSERT_GT(allowed, 0) << "CLUSTER_TEST_MB_S is not set";
    auto const bytes = static_cast<std::size_t>(allowed * 0.4e6);
    auto const count = static_cast<int>(bytes);
    auto data = stream(3, bytes);
    auto const sent = rate(bytes, [&] {
        if (rank() == 0) MPI_Send(data.data(), count, MPI_BYTE, last(), 0, MPI_COMM_WORLD);
        if (rank() == last()) MPI_Recv(data.data(), count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    void* memory = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_allocate(count, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    auto const put = rate(bytes, [&] {
        if (rank() == 0) MPI_Put(data.data(), count, MPI_BYTE, last(), 0, count, MPI_BYTE, window);
        MPI_Win_fence(0, window);
    });
    if (rank() == last()) {
        auto const* const arrived = static_cast<std::byte const*>(memory);
        EXPECT_TRUE(std::equal(data.begin(), data.end(), arrived));
    }
    MPI_Win_free(&window);
    if (rank() == 0) std::printf("  %.0f MB/s allowed, %.1f sent, %.1f put\n", allowed, sent, put);
    EXPECT_LT(sent, 1.2 * allowed);
    EXPECT_LT(put, 1.2 * allowed);
}

TEST(Nodes, AreDescribedByThePlatform)
{
    auto const text = machine::read_platform(setting("CLUSTER_PLATFORM"));
    ASSERT_TRUE(text) << text.error().text;
    auto const found = machine::parse_platform(text->text, text->path);
    ASSERT_TRUE(found) << found.error().text;
    auto const& topology = *found->topology;
    ASSERT_EQ(topology.nodes(), hosts());
    char mine[64] = {};
    gethostname(mine, sizeof mine - 1);
    auto const node = machine::find_hosts(*found, {mine});
    ASSERT_TRUE(node) << node.error().text;
    EXPECT_EQ(node->at(0), rank() * hosts() / ranks());
    // The narrowest link between the first and the last is the one that HaveNoWayAroundTheNetwork measures.
    EXPECT_EQ(topology.distance(0, hosts() - 1), topology.kind() == "flat" ? 2 : 4);
    EXPECT_DOUBLE_EQ(topology.levels().back().bandwidth, 1e6 * std::atof(setting("CLUSTER_TEST_MB_S").c_str()));
    ASSERT_EQ(found->tiers.size(), 2U);
    EXPECT_EQ(found->tiers[1].place, setting("CLUSTER_SSD"));
    EXPECT_EQ(found->tiers[1].capacity_bytes.value, 256.0 * 1024 * 1024);
}

/// HACC-IO's nine variables, one array each.
Job hacc_job(std::int64_t particles, std::string const& layout)
{
    auto const workload = workloads::make_hacc(ranks(), particles, layout);
    Job job(static_cast<std::size_t>(ranks()));
    for (int of_rank = 0; of_rank < ranks(); ++of_rank)
        for (auto const& variable : workload.part(of_rank).variables)
            job[static_cast<std::size_t>(of_rank)].push_back({{{variable.offset, variable.bytes()}}, {}});
    return job;
}

Job dealt(int hole_percent, bool unsorted, int idle_rank)
{
    Random random(5);
    Deal how;
    how.begin = 777;
    how.range = 400'000;
    how.pieces = 900;
    how.hole_percent = hole_percent;
    how.unsorted = unsorted;
    how.idle_rank = idle_rank;
    return deal(random, ranks(), how);
}

Bytes data_of(int run, std::size_t of_rank, std::size_t variable, Declared const& declared)
{
    return stream(static_cast<std::uint64_t>(run) * 131 + of_rank * 17 + variable + 1,
                  static_cast<std::size_t>(declared.bytes()));
}

/// What the file must hold after two runs, the second one further on.
Bytes image_of(Job const& job)
{
    Bytes image;
    for (int run = 0; run < 2; ++run)
        for (std::size_t of_rank = 0; of_rank < job.size(); ++of_rank)
            for (std::size_t variable = 0; variable < job[of_rank].size(); ++variable)
                apply(image, run * end_of(job), job[of_rank][variable],
                      data_of(run, of_rank, variable, job[of_rank][variable]));
    return image;
}

/// After a step ran: it crossed nodes the way it was asked to, and did not quietly fall back to another.
void expect_transport(Step const& step, char const* direction, Options const& options)
{
    auto const route = nlohmann::json::parse(step.plan().json())[direction];
    if (route["way"] == "direct") return;
    EXPECT_EQ(route["network"]["transport"], *options.transport) << route.dump();
}

/// Two runs are written and read back; the first rank and one of another host look at the whole file.
void expect_right(Job const& job, std::string const& path, Options const& options)
{
    auto const me = static_cast<std::size_t>(rank());
    auto const& mine = job[me];
    auto const pattern = pattern_of(mine);
    {
        auto file = File::open(MPI_COMM_WORLD, path, Mode::create, options);
        auto step = file.declare(pattern);
        for (int run = 0; run < 2; ++run) {
            std::vector<Bytes> data;
            for (std::size_t i = 0; i < mine.size(); ++i) data.push_back(data_of(run, me, i, mine[i]));
            step.rebase(run * end_of(job));
            for (std::size_t i = 0; i < mine.size(); ++i) step.write(i, data[i]);
            step.finish();
        }
        expect_transport(step, "write", options);
        file.close();
    }
    barrier();
    if (rank() == 0 || rank() == last()) {
        EXPECT_TRUE(contents(path) == image_of(job)) << "wrong bytes in " << path;
    }
    auto file = File::open(MPI_COMM_WORLD, path, Mode::read, options);
    auto step = file.declare(pattern);
    for (int run = 0; run < 2; ++run) {
        std::vector<Bytes> data;
        for (auto const& variable : mine)
            data.emplace_back(static_cast<std::size_t>(variable.bytes()), std::byte{0xA5});
        step.rebase(run * end_of(job));
        for (std::size_t i = 0; i < mine.size(); ++i) step.read(i, data[i]);
        step.finish();
        for (std::size_t i = 0; i < mine.size(); ++i)
            EXPECT_TRUE(data[i] == data_of(run, me, i, mine[i])) << "run " << run << ", variable " << i;
    }
    expect_transport(step, "read", options);
    file.close();
}

Options with_transport(char const* transport)
{
    Options options;
    options.transport = transport;
    return options;
}

class Transport : public testing::TestWithParam<char const*> {
protected:
    /// In small buffers, so that there are many rounds, and as the planner wants it.
    void expect_right_both_ways(Job const& job) const
    {
        auto const path = setting("CLUSTER_SHARED") + "/nodes_test.dat";
        auto options = with_transport(GetParam());
        expect_right(job, path, options);
        options.direct = Direct::never;
        options.buffersize = 16384;
        expect_right(job, path, options);
        barrier();
        if (rank() == 0) ::unlink(path.c_str());
        barrier();
    }
};

TEST_P(Transport, MovesBlocksOf64Bytes)
{
    expect_right_both_ways(interleave(ranks(), 0, 64, 1000));
}

TEST_P(Transport, MovesBlocksOf4KiB)
{
    expect_right_both_ways(interleave(ranks(), 0, 4096, 20));
}

TEST_P(Transport, MovesHaccParticleByParticle)
{
    expect_right_both_ways(hacc_job(2000, "aos"));
}

TEST_P(Transport, MovesHaccVariableByVariable)
{
    expect_right_both_ways(hacc_job(2000, "soa"));
}

TEST_P(Transport, MovesIrregularLists)
{
    expect_right_both_ways(dealt(0, true, -1));
}

TEST_P(Transport, KeepsHoles)
{
    expect_right_both_ways(dealt(40, false, -1));
}

TEST_P(Transport, ServesARankWithoutData)
{
    expect_right_both_ways(dealt(10, true, 0));
    expect_right_both_ways(dealt(10, true, last()));
}

TEST_P(Transport, PlansForTheNodesThereAre)
{
    auto const path = setting("CLUSTER_SHARED") + "/nodes_test.dat";
    auto file = File::open(MPI_COMM_WORLD, path, Mode::create, with_transport(GetParam()));
    auto const job = interleave(ranks(), 0, 64, 1000);
    auto const plan =
        nlohmann::json::parse(file.declare(pattern_of(job[static_cast<std::size_t>(rank())])).plan().json());
    file.close();
    ASSERT_TRUE(plan["write"].contains("network")) << plan.dump();
    auto const& network = plan["write"]["network"];
    EXPECT_EQ(network["nodes"], hosts());
    // What leaves all nodes is what enters all nodes, and no node has more than that.
    auto const crossing = network["crossing_bytes"].get<std::int64_t>();
    EXPECT_GT(crossing, 0);
    EXPECT_LE(crossing, std::int64_t{ranks()} * 64 * 1000);
    for (auto const* const most : {"most_in_bytes", "most_out_bytes"}) {
        EXPECT_LE(network[most].get<std::int64_t>(), crossing) << most;
        EXPECT_GE(network[most].get<std::int64_t>() * hosts(), crossing) << most;
    }
}

/// A path that each host has for itself, with a file of that name on all of them or on the first host only.
TEST(Nodes, RefuseAFileThatEachHasForItself)
{
    auto const path = setting("CLUSTER_SSD") + "/nodes_test.dat";
    auto const before = stream(1, 1000);
    auto const host = rank() * hosts() / ranks();
    bool const leads = rank() % (ranks() / hosts()) == 0;
    for (bool const stale : {true, false})
        for (auto const mode : {Mode::create, Mode::update, Mode::read}) {
            if (leads && (stale || host == 0)) write_plain(path, before);
            barrier();
            auto const error = same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, path, mode); });
            EXPECT_EQ(error.code, Errc::mismatch);
            auto const names = setting("CLUSTER_HOSTS");
            auto const first = names.substr(0, names.find(','));
            auto const second = names.substr(first.size() + 1, first.size());
            expect_parts(error.text, {path, "on " + first, "on " + second, "a path that all hosts share",
                                      stale ? "another file" : "No such file"});
            if (stale || host == 0) {
                EXPECT_TRUE(contents(path) == before) << "a file was touched";
            }
            barrier();
            if (leads) ::unlink(path.c_str());
            barrier();
        }
}

INSTANTIATE_TEST_SUITE_P(Across, Transport, testing::Values("p2p", "rma"),
                         [](auto const& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace tapioca::test
