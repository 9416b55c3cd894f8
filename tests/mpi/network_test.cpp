// Several nodes, which pairs of ranks pretend to be: how many messages cross, and rare cases: large pieces, slots that
// overflow, bad input, a full disk at another node's aggregator, distant gaps, ranks in another order.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "support/faults.hpp"
#include "support/mpi_calls.hpp"
#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::test {
namespace {

using Json = nlohmann::json;

constexpr int per_node = 2;
constexpr std::int64_t KiB = 1024;

int nodes()
{
    return (ranks() + per_node - 1) / per_node;
}

std::uint64_t sum_of(std::uint64_t value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

/// What crossed since the last time, over all ranks. Collective.
struct Traffic {
    std::uint64_t sent = 0;
    std::uint64_t put = 0;
    std::uint64_t got = 0;
    std::uint64_t large = 0;  ///< of at least 256 KiB
    std::uint64_t large_bytes = 0;
    [[nodiscard]] std::uint64_t all() const { return sent + put + got; }
};

Traffic take_traffic()
{
    Traffic mine;
    for (auto const& message : take_mpi_messages()) {
        ++(message.call == "Put" ? mine.put : message.call == "Get" ? mine.got : mine.sent);
        if (message.bytes < 256 * KiB) continue;
        ++mine.large;
        mine.large_bytes += message.bytes;
    }
    return {sum_of(mine.sent), sum_of(mine.put), sum_of(mine.got), sum_of(mine.large), sum_of(mine.large_bytes)};
}

std::uint64_t rounds_of(Json const& route)
{
    std::uint64_t rounds = 0;
    for (auto const& partition : route["partitions"]) rounds += partition["rounds"].get<std::uint64_t>();
    return rounds;
}

Bytes data_for(std::uint64_t run, std::size_t of_rank, std::size_t variable, Declared const& declared)
{
    return stream(run * 131 + of_rank * 17 + variable + 1, static_cast<std::size_t>(declared.bytes()));
}

class Network : public testing::TestWithParam<char const*> {
protected:
    [[nodiscard]] bool one_sided() const { return std::string(GetParam()) == "rma"; }
    [[nodiscard]] Options options(std::uint64_t buffersize, int aggregators = nodes()) const
    {
        Options result;
        result.transport = GetParam();
        result.ranks_per_node = per_node;
        result.direct = Direct::never;
        result.buffersize = buffersize;
        result.nbaggr = aggregators;
        return result;
    }
    void expect_asked_for(Json const& plan) const
    {
        for (auto const* const way : {"write", "read"}) {
            EXPECT_EQ(plan[way]["network"]["transport"], GetParam()) << plan.dump();
            EXPECT_EQ(plan[way]["network"]["nodes"], nodes());
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Over, Network, testing::Values("p2p", "rma"),
                         [](auto const& instance) { return std::string(instance.param); });

/// A declared job in a file of its own, and what the file must hold.
class Scene {
public:
    Scene(Scratch const& scratch, Job job, Options const& options)
        : job_(std::move(job)),
          path_(scratch.path("file")),
          file_(File::open(MPI_COMM_WORLD, path_, Mode::create, options)),
          step_(file_.declare(pattern_of(mine())))
    {
    }

    void write(std::uint64_t run, std::int64_t base = 0, bool in_background = false)
    {
        supply(run);
        step_.rebase(base);
        move(in_background);
        for (std::size_t r = 0; r < job_.size(); ++r)
            for (std::size_t v = 0; v < job_[r].size(); ++v)
                apply(image_, base, job_[r][v], data_for(run, r, v, job_[r][v]));
    }
    /// What the runs so far must have left in the file.
    void read(std::int64_t base = 0, bool in_background = false)
    {
        std::vector<Bytes> back;
        for (auto const& variable : mine()) back.emplace_back(static_cast<std::size_t>(variable.bytes()));
        for (std::size_t v = 0; v < back.size(); ++v) step_.read(v, back[v]);
        step_.rebase(base);
        move(in_background);
        for (std::size_t v = 0; v < back.size(); ++v) {
            std::uint64_t received = 0;
            EXPECT_TRUE(back[v] == gather(image_, base, mine()[v], std::byte{0}, received)) << "variable " << v;
            EXPECT_EQ(step_.received(v), received);
        }
    }
    void supply(std::uint64_t run)
    {
        auto const me = static_cast<std::size_t>(rank());
        data_.clear();
        for (std::size_t v = 0; v < mine().size(); ++v) data_.push_back(data_for(run, me, v, mine()[v]));
        for (std::size_t v = 0; v < data_.size(); ++v) step_.write(v, data_[v]);
    }
    void expect_right()
    {
        barrier();
        EXPECT_TRUE(contents(path_) == image_);
        barrier();
    }

    [[nodiscard]] std::vector<Declared> const& mine() const { return job_[static_cast<std::size_t>(rank())]; }
    [[nodiscard]] Json plan() const { return Json::parse(step_.plan().json()); }
    [[nodiscard]] std::string const& path() const { return path_; }
    [[nodiscard]] Bytes& image() { return image_; }
    File& file() { return file_; }
    Step& step() { return step_; }

private:
    void move(bool in_background)
    {
        if (!in_background) {
            step_.finish();
            return;
        }
        step_.start();
        for (int i = 0; i < 20 && !step_.progress(); ++i) ::usleep(100);
        step_.wait();
    }

    Job job_;
    std::string path_;
    File file_;
    Step step_;
    Bytes image_;
    std::vector<Bytes> data_;
};

TEST_P(Network, ANodeSendsOneMessageToAnAggregatorInARound)
{
    Scratch const scratch;
    Scene scene(scratch, interleave(ranks(), 0, 512, 256), options(64 * KiB));
    scene.write(0);  // makes buffers and windows
    expect_asked_for(scene.plan());
    auto const plan = scene.plan();
    for (bool const writing : {true, false}) {
        take_traffic();
        writing ? scene.write(1) : scene.read();
        auto const traffic = take_traffic();
        auto const rounds = rounds_of(plan[writing ? "write" : "read"]);
        // All nodes but the aggregator's own feed it; a read takes a request and a reply.
        auto const most = static_cast<std::uint64_t>(nodes() - 1) * rounds * (writing ? 1 : 2);
        auto const aggregators = plan["write"]["aggregators"].size();
        if (rank() == 0)
            std::printf(
                "  %s over %s: %llu messages sent, %llu put, %llu got; %d nodes, %zu aggregators, %llu rounds "
                "of all: at most %llu\n",
                writing ? "write" : "read", GetParam(), static_cast<unsigned long long>(traffic.sent),
                static_cast<unsigned long long>(traffic.put), static_cast<unsigned long long>(traffic.got), nodes(),
                aggregators, static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(most));
        EXPECT_EQ(aggregators, static_cast<std::size_t>(nodes()));
        EXPECT_GE(rounds, 4 * aggregators);
        EXPECT_GT(traffic.all(), 0U) << "messages are seen at all";
        EXPECT_LE(traffic.all(), most);
        EXPECT_EQ(one_sided() ? traffic.sent : traffic.put + traffic.got, 0U);
    }
    scene.expect_right();
    scene.file().close();
}

TEST_P(Network, LargePiecesGoStraightFromTheRankThatHasThem)
{
    Scratch const scratch;
    Scene scene(scratch, interleave(ranks(), 0, 512 * KiB, 2), options(1024 * KiB));
    scene.write(0);
    expect_asked_for(scene.plan());
    take_traffic();
    scene.write(1);
    auto const traffic = take_traffic();
    auto const crossing = scene.plan()["write"]["network"]["crossing_bytes"].get<std::uint64_t>();
    EXPECT_GT(crossing, 0U);
    EXPECT_EQ(traffic.large_bytes, crossing) << "without any heading, and all of it";
    EXPECT_EQ(traffic.large * 512 * KiB, crossing);
    scene.read();
    scene.expect_right();
    scene.file().close();
}

TEST_P(Network, LargePartsInSeveralPiecesGoStraightToo)
{
    Scratch const scratch;
    Scene scene(scratch, interleave(ranks(), 4096, 64 * KiB, 16), options(4096 * KiB, 1));
    scene.write(0);
    take_traffic();
    scene.write(1, 100);
    EXPECT_GT(take_traffic().large, 0U);
    scene.read(100);
    scene.read(0);
    scene.expect_right();
    scene.file().close();
}

TEST_P(Network, LargePiecesThatTheirRankOverwritesItselfKeepTheirOrder)
{
    Scratch const scratch;
    Job job(static_cast<std::size_t>(ranks()));
    for (std::int64_t r = 0; r < ranks(); ++r)
        for (std::int64_t v = 0; v < 3; ++v)
            job[static_cast<std::size_t>(r)].push_back({{{r * 512 * KiB + v * 1000, 300 * KiB}}, {}});
    Scene scene(scratch, job, options(1024 * KiB, 1));
    for (std::uint64_t run = 0; run < 3; ++run) scene.write(run, 0, run == 1);
    scene.expect_right();
    scene.read();
    scene.file().close();
}

/// Every rank has `times` variables at the same places: the last one wins, and all are to be carried.
Job many_times(int times, std::int64_t block, int blocks)
{
    auto job = interleave(ranks(), 777, block, blocks);
    for (auto& variables : job)
        for (int i = 1; i < times; ++i) variables.push_back(variables[0]);
    return job;
}

TEST_P(Network, WhatASlotCannotHoldComesByItself)
{
    Scratch const scratch;
    Scene scene(scratch, many_times(6, 300, 200), options(16 * KiB));
    scene.write(0);
    expect_asked_for(scene.plan());
    take_traffic();
    scene.write(1);
    auto const traffic = take_traffic();
    EXPECT_GT(traffic.all(), static_cast<std::uint64_t>(nodes() - 1) * rounds_of(scene.plan()["write"]));
    EXPECT_GT(traffic.sent, 0U);
    scene.expect_right();
    scene.read();
    for (std::uint64_t run = 2; run < 6; ++run) {
        scene.write(run, 0, run % 2 == 0);
        scene.read(0, run % 2 == 1);
    }
    scene.expect_right();
    scene.file().close();
}

TEST_P(Network, SlotsThatAMemoryCapMakesTinyOverflowAndTheFileIsRight)
{
    Scratch const scratch;
    auto capped = options(64 * KiB);
    capped.buffers = 2;
    capped.memory = 160 * KiB;
    for (bool const irregular : {false, true}) {
        Random random(3);
        Deal how;
        how.range = 2'000'000;
        how.pieces = 3000;
        how.unsorted = true;
        Scene scene(scratch, irregular ? deal(random, ranks(), how) : interleave(ranks(), 0, 700, 1000), capped);
        scene.write(0);
        expect_asked_for(scene.plan());
        take_traffic();
        scene.write(1);
        EXPECT_GT(take_traffic().sent, static_cast<std::uint64_t>(nodes() - 1)) << "strays";
        scene.expect_right();
        scene.read();
        scene.write(2, 3000, true);
        scene.read(3000, true);
        scene.expect_right();
        scene.file().close();
    }
}

TEST_P(Network, BadInputOfOneRankIsEverybodysErrorAndNothingIsWritten)
{
    Scratch const scratch;
    for (int const bad : {0, ranks() - 1})
        for (bool const in_background : {false, true}) {
            Scene scene(scratch, interleave(ranks(), 0, 512, 200), options(16 * KiB));
            scene.write(0);
            auto const before = contents(scene.path());
            barrier();
            auto const data = stream(9, 512 * 200);
            scene.step().write(0, std::span(data).first(rank() == bad ? 7 : data.size()));
            auto const error = same_error_on_all_ranks([&] {
                if (in_background) {
                    scene.step().start();
                    scene.step().wait();
                } else {
                    scene.step().finish();
                }
            });
            EXPECT_EQ(error.code, Errc::invalid_argument);
            EXPECT_EQ(error.rank, bad);
            EXPECT_TRUE(contents(scene.path()) == before);
            barrier();
            scene.write(2);
            scene.read();
            scene.expect_right();
            scene.file().close();
        }
}

TEST_P(Network, AFullDiskAtAnyAggregatorIsTheSameErrorOnAllNodes)
{
    Scratch const scratch;
    Scene scene(scratch, interleave(ranks(), 0, 512, 200), options(8 * KiB, ranks()));
    scene.write(0);
    for (int victim = 0; victim < ranks(); ++victim)
        for (bool const writing : {true, false}) {
            std::optional<faults::Armed> armed;
            auto const call = writing ? faults::Op::write : faults::Op::read;
            auto const error_number = writing ? ENOSPC : EIO;
            if (rank() == victim) armed.emplace(scene.path(), call, faults::Kind::error, 2, error_number);
            auto const error = same_error_on_all_ranks([&] { writing ? scene.write(1) : scene.read(); });
            armed.reset();
            EXPECT_EQ(error.code, writing ? Errc::no_space : Errc::io);
            EXPECT_EQ(error.sys_errno, error_number);
            EXPECT_EQ(error.rank, victim);
            EXPECT_EQ(error.path, scene.path());
            scene.write(2);
            scene.read();
        }
    scene.expect_right();
    scene.file().close();
    expect_next_file_works(scratch, options(8 * KiB));
}

TEST_P(Network, AFarGapIsJumped)
{
    Scratch const scratch;
    constexpr std::int64_t far = std::int64_t{3} << 40;
    for (int const aggregators : {1, nodes()}) {
        auto const path = scratch.path("file");
        auto file = File::open(MPI_COMM_WORLD, path, Mode::create, options(8 * KiB, aggregators));
        Pattern pattern;
        pattern.add({{rank() * 1000, 1000}, {far + (ranks() - 1 - rank()) * 1000, 1000}});
        auto step = file.declare(pattern);
        auto const plan = Json::parse(step.plan().json());
        EXPECT_EQ(plan["write"]["network"]["transport"], "p2p");
        if (one_sided()) {
            expect_parts(plan["write"]["notes"].dump(), {"most rounds have no data: p2p instead of rma"});
        }
        auto const begin = MPI_Wtime();
        for (std::uint64_t run = 0; run < 4; ++run) {
            auto const data = stream(run * 100 + static_cast<std::uint64_t>(rank()), 2000);
            step.write(0, data);
            step.rebase(static_cast<std::int64_t>(run) * 12'345);
            run % 2 == 0 ? (void)step.finish() : (step.start(), (void)step.wait());
            Bytes back(2000);
            step.read(0, back);
            EXPECT_EQ(step.finish().bytes, 2000U);
            EXPECT_TRUE(back == data) << "run " << run;
        }
        EXPECT_LT(MPI_Wtime() - begin, 20) << "as if every round were gone through";
        file.close();
        barrier();
        auto const fd = ::open(path.c_str(), O_RDONLY);
        for (int r = 0; r < ranks(); ++r) {
            Bytes there(1000);
            auto const expected = stream(300 + static_cast<std::uint64_t>(r), 2000);
            EXPECT_EQ(::pread(fd, there.data(), 1000, 3 * 12'345 + r * 1000), 1000);
            EXPECT_TRUE(std::equal(there.begin(), there.end(), expected.begin()));
            EXPECT_EQ(::pread(fd, there.data(), 1000, 3 * 12'345 + far + (ranks() - 1 - r) * 1000), 1000);
            EXPECT_TRUE(std::equal(there.begin(), there.end(), expected.begin() + 1000));
        }
        ::close(fd);
        barrier();
    }
}

TEST_P(Network, ANodeWithDataOnlyFarBehindHoldsNobodyUp)
{
    Scratch const scratch;
    // The last rank's first piece is many buffers after the others' last; and it has nothing in the other partitions.
    Job job(static_cast<std::size_t>(ranks()), std::vector<Declared>(1));
    for (std::int64_t r = 0; r < ranks(); ++r)
        for (std::int64_t i = 0; i < 40; ++i)
            job[static_cast<std::size_t>(r)][0].extents.push_back(
                {(r == ranks() - 1 ? 900'000 : 0) + (i * ranks() + r) * 500, 500});
    for (int const aggregators : {1, nodes(), ranks()}) {
        Scene scene(scratch, job, options(4 * KiB, aggregators));
        for (std::uint64_t run = 0; run < 4; ++run) {
            scene.write(run, static_cast<std::int64_t>(run) * 1001, run % 2 == 1);
            scene.read(static_cast<std::int64_t>(run) * 1001, run > 1);
        }
        scene.expect_right();
        scene.file().close();
    }
}

TEST_P(Network, RanksPerNodeStaysAsItWas)
{
    Scratch const scratch;
    auto first = File::open(MPI_COMM_WORLD, scratch.path("first"), Mode::create, options(8 * KiB));
    auto other = options(8 * KiB);
    for (auto const ranks_per_node : {std::optional<int>(3), std::optional<int>()}) {
        other.ranks_per_node = ranks_per_node;
        auto const error = same_error_on_all_ranks(
            [&] { (void)File::open(MPI_COMM_WORLD, scratch.path("second"), Mode::create, other); });
        EXPECT_EQ(error.code, Errc::setting);
        expect_parts(error.text, {"ranks_per_node was 2"});
        EXPECT_NE(::access(scratch.path("second").c_str(), F_OK), 0) << "nothing was created";
    }
    first.close();
    // It stays also when that file is closed, and another communicator has its own.
    other.ranks_per_node = 3;
    EXPECT_EQ(caught([&] { (void)File::open(MPI_COMM_WORLD, scratch.path("second"), Mode::create, other); }).code,
              Errc::setting);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    auto file = File::open(comm, scratch.path("second"), Mode::create, other);
    Pattern pattern;
    pattern.add({{rank() * 10'000, 10'000}});
    auto step = file.declare(pattern);
    EXPECT_EQ(Json::parse(step.plan().json())["nodes"], (ranks() + 2) / 3);
    auto const data = stream(static_cast<std::uint64_t>(rank()), 10'000);
    step.write(0, data);
    EXPECT_EQ(step.finish().bytes, 10'000U);
    file.close();
    MPI_Comm_free(&comm);
    expect_next_file_works(scratch, options(8 * KiB));
}

TEST_P(Network, StepsWriteAndReadInTurnAtOtherPlacesAndInTheBackground)
{
    Scratch const scratch;
    Random random(11);
    Deal how;
    how.begin = 4000;
    how.range = 200'000;
    how.pieces = 500;
    how.unsorted = true;
    how.own_overlap = true;
    for (int const buffers : {1, 2, 3}) {
        auto small = options(8 * KiB);
        small.buffers = buffers;
        Scene scene(scratch, deal(random, ranks(), how), small);
        for (std::uint64_t run = 0; run < 12; ++run) {
            auto const base = random.pick(-3000, 50'000);
            scene.write(run, base, run % 2 == 0);
            scene.read(base, run % 3 == 0);
            if (run % 4 == 0) scene.read(0, run % 8 == 0);
        }
        scene.expect_right();
        scene.file().close();
    }
}

TEST_P(Network, StepsGoToOtherFilesAndComeBack)
{
    Scratch const scratch;
    Scene scene(scratch, interleave(ranks(), 100, 300, 150), options(8 * KiB));
    scene.write(0);
    auto const image = scene.image();
    {
        auto other = File::open(MPI_COMM_WORLD, scratch.path("other"), Mode::create, options(4 * KiB));
        scene.step().retarget(other);
        scene.image().clear();
        scene.write(1, 5000, true);
        scene.read(5000);
        other.close();
        barrier();
        EXPECT_TRUE(contents(scratch.path("other")) == scene.image());
        barrier();
    }
    scene.step().retarget(scene.file());
    scene.image() = image;
    scene.read();
    scene.write(2, 77);
    scene.expect_right();
    scene.file().close();
}

TEST_P(Network, RanksMayComeInAnyOrder)
{
    Scratch const scratch;
    int const reversed = ranks() - rank();
    int const apart = rank() % 2 * ranks() + rank();  // neighbours in the world are on different nodes
    for (int const key : {reversed, apart}) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm);
        int me = 0;
        MPI_Comm_rank(comm, &me);
        auto const job = interleave(ranks(), 50, 333, 300);
        auto const& mine = job[static_cast<std::size_t>(me)];
        auto file = File::open(comm, scratch.path("file"), Mode::create, options(16 * KiB));
        auto step = file.declare(pattern_of(mine));
        auto const data = data_for(0, static_cast<std::size_t>(me), 0, mine[0]);
        step.write(0, data);
        step.finish();
        expect_asked_for(Json::parse(step.plan().json()));
        Bytes back(data.size());
        step.read(0, back);
        step.start();
        step.wait();
        EXPECT_TRUE(back == data);
        file.close();
        Bytes image;
        for (std::size_t r = 0; r < job.size(); ++r) apply(image, 0, job[r][0], data_for(0, r, 0, job[r][0]));
        barrier();
        EXPECT_TRUE(contents(scratch.path("file")) == image);
        MPI_Comm_free(&comm);
        barrier();
    }
}

TEST_P(Network, PlanningSendsNoMoreForManyExtentsThanForFew)
{
    Scratch const scratch;
    std::vector<std::uint64_t> sent;
    for (std::int64_t const count : {4, 40'000}) {
        auto wishes = options(64 * KiB);
        wishes.report = scratch.path("report" + std::to_string(count) + ".json");
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, wishes);
        // The same bytes in all, cut at uneven places so that they stay a list.
        std::vector<Extent> extents;
        constexpr std::int64_t each = 400'000;
        for (std::int64_t i = 0, at = 0; i < count; ++i) {
            auto const next = i + 1 == count ? each : (i + 1) * each / count - (i % 3 == 0 ? 1 : 0);
            extents.push_back({at * ranks() + rank() * (next - at), next - at});
            at = next;
        }
        Pattern pattern;
        pattern.add(extents);
        (void)file.declare(pattern);
        file.close();
        barrier();
        std::ifstream in(*wishes.report);
        sent.push_back(Json::parse(in)["files"][0]["planning_bytes"]["max"].get<std::uint64_t>());
    }
    if (rank() == 0)
        std::printf("  planning: %llu bytes from a rank for 4 extents, %llu for 40000\n",
                    static_cast<unsigned long long>(sent[0]), static_cast<unsigned long long>(sent[1]));
    EXPECT_GT(sent[0], 0U);
    EXPECT_LE(sent[1], sent[0]);
}

}  // namespace
}  // namespace tapioca::test
