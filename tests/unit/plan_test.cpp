// Planning: cuts, rounds, the memory cap and the choice between aggregators and direct access.
#include "plan/plan.hpp"

#include <numeric>
#include <random>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace tapioca::plan {
namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;

/// Rank r's extents as one variable each.
Job job_of(std::vector<std::vector<Extent>> const& ranks, Options const& options, std::vector<std::uint64_t>& histogram)
{
    Job job;
    std::vector<Pattern> patterns;
    for (auto const& extents : ranks) {
        Pattern pattern;
        pattern.add(extents);
        job.pattern.add(pattern::summarise(tapioca::pattern::variables_of(pattern)));
        patterns.push_back(pattern);
    }
    histogram.assign(histogram_bins, 0);
    for (auto const& pattern : patterns) {
        auto const mine = pattern::histogram(tapioca::pattern::variables_of(pattern), job.pattern.begin,
                                             job.pattern.end, histogram_bins);
        for (std::size_t i = 0; i < mine.size(); ++i) histogram[i] += mine[i];
    }
    job.storage = machine::storage_profile("tmpfs");
    job.options = options;
    job.ranks = static_cast<int>(ranks.size());
    job.cores = 4;
    return job;
}

Plan plan_of(std::vector<std::vector<Extent>> const& ranks, Options const& options)
{
    std::vector<std::uint64_t> histogram;
    auto const job = job_of(ranks, options, histogram);
    auto plan = make(job, histogram);
    EXPECT_TRUE(plan) << plan.error().text;
    return plan ? *plan : Plan{};
}

Options aggregated(int aggregators, std::uint64_t buffersize = 0)
{
    Options options;
    options.direct = Direct::never;
    options.nbaggr = aggregators;
    if (buffersize > 0) options.buffersize = buffersize;
    return options;
}

TEST(Plan, CutsAreAlignedAndCoverTheRange)
{
    auto const plan = plan_of({{{1001, 400'000}}, {{401'001, 99'999}}, {}, {}}, aggregated(4));
    auto const& cuts = plan.write.cuts;
    ASSERT_EQ(cuts.size(), 5U);
    EXPECT_EQ(cuts.front(), 1001);
    EXPECT_EQ(cuts.back(), 501'000);
    EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
    for (std::size_t i = 1; i + 1 < cuts.size(); ++i) EXPECT_EQ(cuts[i] % 4096, 0);
    EXPECT_EQ(plan.write.ranks, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Plan, BuffersAreNoLargerThanWhatThereIs)
{
    auto const plan = plan_of({{{1001, 50'000}}, {{51'001, 49'999}}, {}, {}}, aggregated(2, std::uint64_t{1} << 40));
    for (auto const* const route : {&plan.write, &plan.read}) {
        EXPECT_GE(route->round_bytes, 100'000U);
        EXPECT_LE(route->round_bytes, 100'000U + 3 * 4096);
        EXPECT_NE(fmt::format("{}", fmt::join(route->notes, " ")).find("there is no more data"), std::string::npos);
    }
}

TEST(Plan, CutsBalanceBytesNotRange)
{
    // 8 MiB at the front, then 1 KiB in every MiB for 1 GiB.
    std::vector<Extent> sparse;
    for (std::int64_t i = 0; i < 1024; ++i) sparse.push_back({(8 + i) * static_cast<std::int64_t>(MiB), 1024});
    auto const plan = plan_of({{{0, 8 * static_cast<std::int64_t>(MiB)}}, sparse, {}, {}}, aggregated(4));
    auto const& cuts = plan.write.cuts;
    std::vector<std::uint64_t> bytes(4, 0);
    for (std::size_t p = 0; p < 4; ++p) {
        bytes[p] += static_cast<std::uint64_t>(std::max<std::int64_t>(
            0, std::min<std::int64_t>(cuts[p + 1], 8 * static_cast<std::int64_t>(MiB)) - cuts[p]));
        for (auto const& extent : sparse)
            if (extent.offset >= cuts[p] && extent.offset < cuts[p + 1]) bytes[p] += 1024;
    }
    auto const total = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
    EXPECT_EQ(total, 9 * MiB);
    // A quarter each, but for what one bin of the histogram may hold (2 MiB of the file).
    for (auto const part : bytes) EXPECT_NEAR(static_cast<double>(part), 2.25 * MiB, 2.1 * MiB);
    EXPECT_GT(cuts[3], 8 * static_cast<std::int64_t>(MiB) - 3 * static_cast<std::int64_t>(MiB));
    EXPECT_LT(cuts[1], 8 * static_cast<std::int64_t>(MiB)) << "cutting the range evenly would give 258 MiB";
}

TEST(Plan, AggregatorsAreSpreadOverTheRanksAndNoMoreThanThese)
{
    std::vector<std::vector<Extent>> ranks(8);
    ranks[0] = {{0, 1'000'000}};
    EXPECT_EQ(plan_of(ranks, aggregated(2)).write.ranks, (std::vector<int>{0, 4}));
    EXPECT_EQ(plan_of(ranks, aggregated(3)).write.ranks, (std::vector<int>{0, 2, 5}));
    auto const all = plan_of(ranks, aggregated(100));
    EXPECT_EQ(all.write.ranks.size(), 8U);
    ASSERT_EQ(all.write.notes.size(), 1U);
    EXPECT_NE(all.write.notes[0].find("100 aggregators"), std::string::npos);
}

/// Rounds and partitions follow each other without gap and begin on blocks, but for the very first.
void expect_sound(Schedule const& schedule, Route const& route, std::int64_t base, std::int64_t block)
{
    std::int64_t at = base + route.cuts.front();
    for (std::size_t p = 0; p < schedule.partitions.size(); ++p) {
        auto const& partition = schedule.partitions[p];
        ASSERT_EQ(partition.begin, at) << "partition " << p;
        ASSERT_LE(partition.begin, partition.end);
        ASSERT_EQ(partition.origin % block, 0);
        ASSERT_TRUE(p == 0 || partition.begin % block == 0 || partition.begin == partition.end ||
                    partition.begin == base + route.cuts.front());
        for (std::int64_t round = 0; round < partition.rounds; ++round) {
            ASSERT_EQ(schedule.round_begin(p, round), at);
            ASSERT_GT(schedule.round_end(p, round), at) << "an empty round";
            ASSERT_EQ(schedule.round_of(p, at), round);
            at = schedule.round_end(p, round);
            ASSERT_EQ(schedule.round_of(p, at - 1), round);
            ASSERT_LE(at - schedule.round_begin(p, round), schedule.round_bytes);
            ASSERT_TRUE(at % block == 0 || at == base + route.cuts.back());
        }
        ASSERT_EQ(at, partition.end);
    }
    ASSERT_EQ(at, base + route.cuts.back());
}

TEST(Schedule, IsAlignedInTheFileForAnyBase)
{
    std::mt19937 random(7);
    auto const pick = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    for (int i = 0; i < 400; ++i) {
        std::vector<std::vector<Extent>> ranks(static_cast<std::size_t>(pick(1, 8)));
        for (auto& extents : ranks) extents = {{pick(0, 100'000), pick(0, 60'000)}};
        ranks[0] = {{pick(0, 100'000), pick(1, 60'000)}};
        auto const plan =
            plan_of(ranks, aggregated(static_cast<int>(pick(1, 8)), static_cast<std::uint64_t>(pick(1, 5) * 4096)));
        for (std::int64_t const base :
             {std::int64_t{0}, pick(0, 1'000'000), std::int64_t{1} << 50, pick(-plan.job.pattern.begin, 0)}) {
            expect_sound(schedule(plan.write, 4096, base), plan.write, base, 4096);
            expect_sound(schedule(plan.read, 4096, base), plan.read, base, 4096);
            ASSERT_FALSE(HasFatalFailure()) << "pattern " << i << ", base " << base;
        }
    }
}

TEST(Schedule, HasNoEmptyRoundsInAFileWithLargerBlocks)
{
    // A step that is retargeted takes its rounds to a file system whose blocks may be larger than they are.
    auto const plan = plan_of({{{0, 100'000}}, {{100'000, 50'000}}}, aggregated(2, 4096));
    for (std::int64_t const block : {512, 4096, 65'536, 1 << 20})
        for (std::int64_t const base : {0, 3000, 70'001, 2'000'000})
            for (auto const* const route : {&plan.write, &plan.read}) {
                auto const rounds = schedule(*route, block, base);
                for (std::size_t p = 0; p < rounds.partitions.size(); ++p)
                    for (std::int64_t r = 0; r < rounds.partitions[p].rounds; ++r)
                        ASSERT_LT(rounds.round_begin(p, r), rounds.round_end(p, r)) << "block " << block;
            }
}

TEST(Schedule, OfNothingHasNoRounds)
{
    auto const plan = plan_of({{}, {}}, aggregated(2));
    for (auto const& partition : schedule(plan.write, 4096, 12345).partitions) EXPECT_EQ(partition.rounds, 0);
    for (auto const& partition : schedule(plan.read, 4096, 12345).partitions) EXPECT_EQ(partition.rounds, 0);
}

TEST(Schedule, ReachesTheLastOffsetThereIs)
{
    auto const plan = plan_of({{{INT64_MAX - 10'000, 10'000}}, {}}, aggregated(2, 4096));
    auto const rounds = schedule(plan.write, 4096, 0);
    auto const& last = rounds.partitions.back();
    EXPECT_EQ(last.end, INT64_MAX);
    for (std::size_t p = 0; p < rounds.partitions.size(); ++p)
        for (std::int64_t r = 0; r < rounds.partitions[p].rounds; ++r)
            EXPECT_GT(rounds.round_end(p, r), rounds.round_begin(p, r));
}

TEST(Memory, CapShrinksTheBuffersAndSaysSo)
{
    auto options = aggregated(1, MiB);
    options.memory = 300 * KiB;
    auto const plan = plan_of({{{0, 10'000'000}}}, options);
    EXPECT_LE(plan.write.memory_per_aggregator() + plan.job.pattern.most_bookkeeping_bytes, 300 * KiB);
    EXPECT_LE(plan.read.memory_per_aggregator() + plan.job.pattern.most_bookkeeping_bytes, 300 * KiB);
    EXPECT_GE(plan.write.memory_per_aggregator(), 100 * KiB) << "no smaller than need be";
    EXPECT_EQ(plan.write.round_bytes % 4096, 0U);
    ASSERT_FALSE(plan.write.notes.empty());
    EXPECT_NE(plan.write.notes[0].find("1 MiB"), std::string::npos);
}

TEST(Memory, CapHoldsForBuffersThatPass64Bits)
{
    auto options = aggregated(1, std::uint64_t{1} << 60);
    options.buffers = 16;
    options.memory = MiB;
    auto const plan = plan_of({{{0, 10'000'000}}}, options);
    EXPECT_LE(plan.write.memory_per_aggregator(), MiB);
    EXPECT_GE(plan.write.memory_per_aggregator(), MiB / 4);
}

TEST(Memory, CapGivesUpBuffersLast)
{
    auto options = aggregated(1, MiB);
    options.buffers = 4;
    options.memory = 6 * KiB;
    auto const plan = plan_of({{{0, 10'000'000}}}, options);
    EXPECT_EQ(plan.write.round_bytes, 4096U);
    EXPECT_EQ(plan.write.buffers, 1);
}

TEST(Memory, CapThatCannotBeKeptFailsWithTheSizes)
{
    auto options = aggregated(1, MiB);
    options.memory = 1000;
    std::vector<std::uint64_t> histogram;
    auto const job = job_of({{{0, 10'000'000}}}, options, histogram);
    auto const plan = make(job, histogram);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::memory);
    for (auto const* const part : {"writing needs 4.", "4 KiB buffers", "TAPIOCA_MEMORY allows 1000 B"})
        EXPECT_NE(plan.error().text.find(part), std::string::npos) << plan.error().text;
}

TEST(Memory, CapCountsBookkeepingOfDirectAccessToo)
{
    Options options;
    options.direct = Direct::always;
    options.memory = 1000;
    std::vector<Extent> extents;
    for (std::int64_t i = 0; i < 1000; ++i) extents.push_back({i * 100 + i % 3, 10});
    std::vector<std::uint64_t> histogram;
    auto const job = job_of({extents}, options, histogram);
    EXPECT_FALSE(make(job, histogram));
}

TEST(Way, FollowsTheWish)
{
    std::vector<Extent> small;
    for (std::int64_t i = 0; i < 1000; ++i) small.push_back({i * 128, 64});
    Options always;
    always.direct = Direct::always;
    EXPECT_EQ(plan_of({small}, always).write.way, Way::direct);
    EXPECT_EQ(plan_of({small}, always).read.way, Way::direct);
    EXPECT_TRUE(plan_of({small}, always).write.ranks.empty());
    EXPECT_EQ(plan_of({{{0, 1'000'000'000}}}, aggregated(1)).write.way, Way::aggregated);
}

TEST(Way, IsTheOnePredictedFaster)
{
    // 64-byte blocks dealt to 4 ranks: a call each would take longer than gathering them.
    std::vector<std::vector<Extent>> small(4);
    for (std::int64_t i = 0; i < 40'000; ++i) small[static_cast<std::size_t>(i % 4)].push_back({i * 64, 64});
    auto const gathered = plan_of(small, {});
    EXPECT_EQ(gathered.write.way, Way::aggregated);
    EXPECT_EQ(gathered.read.way, Way::aggregated);
    ASSERT_EQ(gathered.write.candidates().size(), 2U);
    EXPECT_LE(gathered.write.candidates()[0].seconds, gathered.write.candidates()[1].seconds);
    // One rank with one large piece: nothing to gather.
    auto const alone = plan_of({{{0, 100'000'000}}, {}, {}, {}}, {});
    EXPECT_EQ(alone.write.way, Way::direct);
}

TEST(Explain, SaysWhoDoesWhatAndWhy)
{
    auto const text = explain(plan_of({{{0, 100'000}}, {{200'000, 100'000}}}, aggregated(2)), {"nbaggr=2 (code)"});
    for (auto const* const part : {"plan for 2 ranks on 4 cores", "tmpfs", "2 aggregators on ranks 0, 1",
                                   "direct=never asked for", "may have holes", "nbaggr=2 (code)", "partition 1: bytes"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

}  // namespace
}  // namespace tapioca::plan
