// The number of aggregators, and where they begin in a striped file.
#include "plan/aggregator_count.hpp"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/units.hpp"
#include "plan/align.hpp"

namespace tapioca::plan {
namespace {

/// `bytes` in one piece for each rank.
Job job_of(char const* file_system, std::uint64_t bytes, int ranks, int nodes, int cores)
{
    Job job;
    auto const each = static_cast<std::int64_t>(bytes) / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
        Pattern pattern;
        pattern.add({{rank * each, each}});
        job.pattern.add(pattern::summarise(tapioca::pattern::variables_of(pattern)));
    }
    job.storage = machine::storage_profile(file_system);
    job.ranks = ranks;
    job.nodes = nodes;
    job.cores = cores;
    return job;
}

Job striped(std::uint64_t bytes, int ranks, int nodes, int servers)
{
    auto job = job_of("lustre", bytes, ranks, nodes, 64);
    job.storage.stripe_bytes = core::MiB;
    job.storage.stripe_count = servers;
    return job;
}

TEST(AggregatorCount, IsThatOfTheMeasuredRuleWithoutStripes)
{
    struct Case {
        char const* file_system;
        int ranks, nodes, cores, writers, readers;
    };
    for (auto const& [file_system, ranks, nodes, cores, write, read] :
         std::initializer_list<Case>{{"tmpfs", 16, 1, 16, 6, 16},
                                     {"tmpfs", 16, 1, 4, 1, 16},
                                     {"tmpfs", 2, 1, 16, 1, 2},
                                     {"ext", 16, 1, 16, 1, 16},
                                     {"ext", 32, 1, 32, 1, 16},
                                     {"tmpfs", 16, 4, 16, 8, 8},
                                     {"nfs", 16, 4, 4, 4, 4},
                                     {"ceph", 8, 8, 2, 8, 8},
                                     {"lustre", 64, 1, 64, 1, 16}}) {
        auto const job = job_of(file_system, 64 * core::MiB, ranks, nodes, cores);
        EXPECT_EQ(writers(job).count, write) << file_system << ' ' << ranks << ' ' << nodes;
        EXPECT_EQ(readers(job).count, read) << file_system << ' ' << ranks << ' ' << nodes;
        EXPECT_EQ(writers(job).why, "");
    }
}

TEST(AggregatorCount, IsTwoForEachServerOfAStripedFile)
{
    EXPECT_EQ(writers(striped(1024 * core::MiB, 64, 4, 8)).count, 16);
    EXPECT_EQ(readers(striped(1024 * core::MiB, 64, 4, 8)).count, 16);
    EXPECT_EQ(writers(striped(1024 * core::MiB, 64, 64, 8)).count, 16)
        << "never more than are of use, although nodes are many";
    EXPECT_EQ(writers(striped(1024 * core::MiB, 12, 4, 8)).count, 8) << "an equal share for every server";
    EXPECT_EQ(writers(striped(1024 * core::MiB, 7, 4, 8)).count, 4);
    EXPECT_EQ(writers(striped(3 * core::MiB, 64, 4, 8)).count, 4) << "no more than stripes";
    EXPECT_EQ(writers(striped(1024 * core::MiB, 64, 1, 8)).count, 16);
    EXPECT_NE(writers(striped(1024 * core::MiB, 64, 4, 8)).why.find("16 aggregators: 8 servers"), std::string::npos);
    auto crowded = striped(1024 * core::MiB, 64, 4, 8);
    crowded.cores = 4;
    EXPECT_EQ(writers(crowded).count, 4) << "writers need cores";
}

TEST(AggregatorCount, IsNoMoreThanARemoteFileSystemIsKnownToTake)
{
    auto job = job_of("nfs", 64 * core::MiB, 64, 16, 16);
    EXPECT_EQ(writers(job).count, 16);
    job.storage.write_streams = 4;
    EXPECT_EQ(writers(job).count, 4);
    EXPECT_NE(writers(job).why, "");
}

TEST(AggregatorCount, ForEachServerMayBeAskedFor)
{
    auto job = striped(1024 * core::MiB, 64, 4, 8);
    job.options.aggr_per_ost = 4;
    EXPECT_EQ(writers(job).count, 32);
    EXPECT_EQ(readers(job).count, 32);
    job.options.aggr_per_ost = 64;
    EXPECT_EQ(writers(job).count, 64) << "no more than ranks";
    job.options.nbaggr = 5;
    EXPECT_EQ(writers(job).count, 5) << "a number is a number";
    auto plain = job_of("ext", 64 * core::MiB, 16, 1, 16);
    plain.options.aggr_per_ost = 4;
    EXPECT_EQ(writers(plain).count, 1);
    EXPECT_NE(writers(plain).why.find("without effect"), std::string::npos);
}

TEST(AggregatorCount, OfThePosterIsThePowerOfTwoWithWhichSharesFitTheMemory)
{
    auto job = job_of("ext", 64 * core::MiB, 64, 1, 16);
    job.options.nbaggr = AggregatorCount::poster;
    job.options.buffersize = 4 * core::MiB;
    job.options.buffers = 2;
    EXPECT_EQ(writers(job).count, 8) << "64 MiB by 8 MiB";
    EXPECT_EQ(readers(job).count, 8);
    job.options.buffers = 3;
    EXPECT_EQ(writers(job).count, 8) << "64 by 12 is 5.3, and the next power of two 8";
    job.options.memory = 2 * core::MiB;
    EXPECT_EQ(writers(job).count, 32);
    EXPECT_NE(writers(job).why.find("2 MiB of memory"), std::string::npos);
    job.options.memory.reset();
    job.options.buffersize = 4 * core::KiB;
    job.ranks = 48;
    EXPECT_EQ(writers(job).count, 32) << "a power of two also where ranks are few";
    auto tiny = job_of("ext", 16 * core::KiB, 64, 1, 16);
    tiny.options = job.options;
    tiny.options.buffersize = 512;
    EXPECT_EQ(writers(tiny).count, 2) << "each writes more than a block";
    tiny.pattern.bytes = 0;
    EXPECT_EQ(writers(tiny).count, 1);
}

TEST(AggregatorCount, OfReadersMayDiffer)
{
    auto job = job_of("tmpfs", 64 * core::MiB, 16, 1, 16);
    job.options.direct = Direct::never;
    job.options.nbaggr = 3;
    job.options.nbaggr_read = 5;
    auto const plan = make(job, {});
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->write.aggregators, 3);
    EXPECT_EQ(plan->read.aggregators, 5);
    job.nodes = 4;
    auto const across = make(job, {});
    ASSERT_TRUE(across);
    EXPECT_EQ(across->write.cuts.size(), 4U);
    EXPECT_EQ(across->read.cuts.size(), 6U);
}

TEST(Striped, RoundsAreStripes)
{
    auto job = striped(1024 * core::MiB, 64, 4, 8);
    job.options.direct = Direct::never;
    for (auto const& [stripe, round] :
         std::initializer_list<std::pair<std::uint64_t, std::uint64_t>>{{core::MiB, core::MiB},
                                                                        {4 * core::MiB, 4 * core::MiB},
                                                                        {64 * core::KiB, core::MiB},
                                                                        {192 * core::KiB, 1152 * core::KiB},
                                                                        {64 * core::MiB, 16 * core::MiB}}) {
        job.storage.stripe_bytes = static_cast<std::int64_t>(stripe);
        auto const plan = make(job, {});
        ASSERT_TRUE(plan);
        EXPECT_EQ(plan->write.round_bytes, round);
        EXPECT_EQ(plan->read.round_bytes, round);
        EXPECT_EQ(plan->write.unit, job.storage.stripe_bytes);
        for (std::size_t p = 1; p + 1 < plan->write.cuts.size(); ++p)
            EXPECT_EQ(plan->write.cuts[p] % job.storage.stripe_bytes, 0);
    }
}

TEST(Striped, BuffersThatDoNotFitTheStripesAreNoted)
{
    auto job = striped(1024 * core::MiB, 64, 4, 8);
    job.options.direct = Direct::never;
    auto const notes = [&](std::uint64_t buffersize) {
        job.options.buffersize = buffersize;
        auto const plan = make(job, {});
        EXPECT_EQ(plan->write.round_bytes, buffersize);
        return plan->write.notes.size();
    };
    auto const fitting = notes(core::MiB);
    EXPECT_EQ(notes(4 * core::MiB), fitting);
    EXPECT_EQ(notes(256 * core::KiB), fitting);
    EXPECT_EQ(notes(1536 * core::KiB), fitting + 1);
    EXPECT_EQ(notes(384 * core::KiB), fitting + 1);
}

TEST(Striped, MemoryCapMayCutRoundsBelowAStripe)
{
    auto job = striped(1024 * core::MiB, 64, 1, 8);
    job.options.direct = Direct::never;
    job.options.memory = core::MiB;
    auto const plan = make(job, {});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_LE(plan->write.memory_per_aggregator(), core::MiB);
    EXPECT_EQ(core::MiB % plan->write.round_bytes, 0U);
}

/// The servers on which partitions begin.
std::vector<std::int64_t> servers_of(std::vector<std::int64_t> const& cuts, std::int64_t stripe, int servers)
{
    std::vector<std::int64_t> result;
    for (std::size_t p = 0; p + 1 < cuts.size(); ++p) result.push_back(cuts[p] / stripe % servers);
    return result;
}

void expect_apart(std::vector<std::int64_t> const& at, int servers, std::size_t first = 0)
{
    for (std::size_t p = first; p + static_cast<std::size_t>(servers) <= at.size(); ++p) {
        std::set<std::int64_t> const some(at.begin() + static_cast<std::ptrdiff_t>(p),
                                          at.begin() + static_cast<std::ptrdiff_t>(p) + servers);
        ASSERT_EQ(some.size(), static_cast<std::size_t>(servers)) << "from partition " << p;
    }
}

TEST(Stagger, MovesPartitionsApartThatBeginOnOneServer)
{
    // Eight servers, partitions of eight stripes: all would begin on server 0.
    std::vector<std::int64_t> cuts;
    for (std::int64_t p = 0; p <= 16; ++p) cuts.push_back(p * 8 * 4096);
    auto const moved = stagger(cuts, 4096, 8);
    EXPECT_EQ(servers_of(moved, 4096, 8), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
    // Partitions of nine stripes are apart as they are.
    for (std::size_t p = 0; p < cuts.size(); ++p) cuts[p] = static_cast<std::int64_t>(p) * 9 * 4096;
    EXPECT_EQ(stagger(cuts, 4096, 8), cuts);
}

TEST(Stagger, TakesSmallPartitionsToAllServersToo)
{
    std::vector<std::int64_t> cuts;
    for (std::int64_t p = 0; p <= 16; ++p) cuts.push_back(p * 4 * 4096);
    auto const moved = stagger(cuts, 4096, 8);
    EXPECT_EQ(servers_of(moved, 4096, 8), (std::vector<std::int64_t>{0, 4, 1, 5, 2, 6, 3, 7, 0, 4, 1, 5, 2, 6, 3, 7}));
    for (std::size_t p = 0; p < 16; ++p) EXPECT_LE(moved[p + 1] - moved[p], 5 * 4096);
}

TEST(Stagger, LeavesAloneWhatIsNotStriped)
{
    std::vector<std::int64_t> const cuts{0, 80 * 4096, 160 * 4096, 240 * 4096};
    EXPECT_EQ(stagger(cuts, 4096, 0), cuts);
    EXPECT_EQ(stagger(cuts, 4096, 1), cuts);
    EXPECT_EQ(stagger({0, 100}, 4096, 8), (std::vector<std::int64_t>{0, 100}));
    EXPECT_EQ(stagger({0, 4096, 8192, 8193}, 4096, 8), (std::vector<std::int64_t>{0, 4096, 8192, 8193}));
}

TEST(Stagger, HoldsOnRandomCuts)
{
    std::mt19937_64 random(11);
    auto const pick = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    for (int i = 0; i < 2000; ++i) {
        auto const servers = static_cast<int>(pick(2, 40));
        auto const stripe = pick(1, 5) * 65'536;
        auto const partitions = pick(1, 70);
        bool const large = pick(0, 1) == 0;  // every partition has a stripe on every server
        bool const equal = pick(0, 1) == 0;
        auto const least = large ? servers : std::int64_t{0};
        auto const size = pick(least, least + 3 * servers);
        auto const first = pick(0, 100) * stripe;
        std::vector<std::int64_t> cuts{first + pick(0, 1) * pick(0, stripe - 1)};
        for (std::int64_t p = 1; p <= partitions; ++p)
            cuts.push_back((p == 1 ? first + stripe : cuts.back()) + (equal ? size : pick(least, size)) * stripe);
        cuts.back() += pick(0, stripe - 1);
        auto const moved = stagger(cuts, stripe, servers);
        ASSERT_EQ(moved.size(), cuts.size());
        ASSERT_EQ(moved.front(), cuts.front());
        ASSERT_EQ(moved.back(), cuts.back());
        ASSERT_TRUE(std::is_sorted(moved.begin(), moved.end())) << "every byte in one partition";
        for (std::size_t p = 1; p + 1 < cuts.size(); ++p) {
            ASSERT_EQ(moved[p] % stripe, 0);
            ASSERT_LE(std::abs(moved[p] - cuts[p]), servers * stripe / 2) << "balance";
        }
        if (large) expect_apart(servers_of(moved, stripe, servers), servers);
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << "case " << i;
    }
}

TEST(Stagger, HoldsForAWholePlanAtAnyBase)
{
    for (int const servers : {2, 3, 4, 8, 12, 56}) {
        auto job = striped(262'144 * core::MiB, 128, 8, servers);  // more than 16 rows of stripes each
        job.options.direct = Direct::never;
        auto const plan = make(job, {});
        ASSERT_TRUE(plan);
        auto const unit = plan->write.unit;
        for (std::int64_t const base : {std::int64_t{0}, std::int64_t{12345}, unit * 7, (std::int64_t{1} << 40) + 99}) {
            auto const rounds = schedule(plan->write, job.storage.block_bytes, base);
            auto at = base;
            std::vector<std::int64_t> cuts;
            for (std::size_t p = 0; p < rounds.partitions.size(); ++p) {
                ASSERT_EQ(rounds.partitions[p].begin, at);
                ASSERT_TRUE(p == 0 || at % unit == 0);
                for (std::int64_t r = 0; r < rounds.partitions[p].rounds; ++r) {
                    ASSERT_EQ(rounds.round_begin(p, r), at);
                    at = rounds.round_end(p, r);
                    ASSERT_TRUE(at % unit == 0 || at == base + job.pattern.end);
                }
                cuts.push_back(rounds.partitions[p].begin);
            }
            ASSERT_EQ(at, base + job.pattern.end);
            cuts.push_back(at);
            expect_apart(servers_of(cuts, unit, servers), servers, base % unit == 0 ? 0 : 1);
        }
    }
}

}  // namespace
}  // namespace tapioca::plan
