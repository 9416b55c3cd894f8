// Summary: proving a pattern dense from hashes alone, granules, and the histogram.
#include "pattern/summary.hpp"

#include "pattern/scale.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "support/layouts.hpp"

namespace tapioca::pattern {
namespace {

using test::pick;

Summary of(std::vector<std::vector<Extent>> const& ranks)
{
    Summary total;
    for (auto const& extents : ranks) {
        Pattern pattern;
        pattern.add(extents);
        total.add(summarise(tapioca::pattern::variables_of(pattern)));
    }
    return total;
}

TEST(Summary, IsDenseWhereEveryByteIsCoveredOnce)
{
    EXPECT_TRUE(of({{{0, 10}}}).dense());
    EXPECT_TRUE(of({{{100, 10}}, {{110, 5}}}).dense());
    EXPECT_TRUE(of({{{0, 4}, {8, 4}}, {{4, 4}, {12, 4}}}).dense());
    EXPECT_TRUE(of({{{20, 4}}, {}, {{0, 20}}}).dense());
}

TEST(Summary, IsNotDenseWithHolesOrOverlap)
{
    EXPECT_FALSE(of({}).dense());
    EXPECT_FALSE(of({{}, {}}).dense());
    EXPECT_FALSE(of({{{0, 10}, {11, 5}}}).dense()) << "a hole";
    EXPECT_FALSE(of({{{0, 10}}, {{5, 10}}}).dense()) << "an overlap";
    EXPECT_FALSE(of({{{0, 10}}, {{0, 10}}}).dense()) << "the same twice";
    EXPECT_FALSE(of({{{0, 10}, {0, 10}}}).dense()) << "a rank's own overlap";
}

TEST(Summary, IsNotDenseWhereAnOverlapHidesAHoleOfTheSameSize)
{
    auto const summary = of({{{0, 10}, {20, 10}}, {{5, 10}}});
    EXPECT_EQ(summary.bytes, static_cast<std::uint64_t>(summary.end - summary.begin));
    EXPECT_FALSE(summary.dense());
}

TEST(Summary, AgreesWithCountingOnRandomPatterns)
{
    std::mt19937 random(5);
    int dense = 0;
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::vector<Extent>> ranks(3);
        std::vector<int> covered(64, 0);
        std::int64_t at = pick(random, 0, 8);
        while (at < 60) {
            auto const length = std::min<std::int64_t>(pick(random, 1, 9), 63 - at);
            auto shift = pick(random, 0, 19) == 0 ? pick(random, -1, 1) : 0;
            if (at + shift < 0) shift = 0;
            ranks[static_cast<std::size_t>(pick(random, 0, 2))].push_back({at + shift, length});
            for (auto b = at + shift; b < at + shift + length; ++b) ++covered[static_cast<std::size_t>(b)];
            at += length;
        }
        auto const summary = of(ranks);
        auto const once = std::all_of(covered.begin() + summary.begin, covered.begin() + summary.end,
                                      [](int times) { return times == 1; });
        ASSERT_EQ(summary.dense(), once) << "pattern " << i;
        dense += once;
    }
    EXPECT_GT(dense, 100) << "both cases must occur";
    EXPECT_LT(dense, 2900);
}

TEST(Summary, KnowsRangesCountsAndTheLargestShare)
{
    auto const summary = of({{{100, 10}}, {}, {{50, 5}, {200, 30}}});
    EXPECT_EQ(summary.begin, 50);
    EXPECT_EQ(summary.end, 230);
    EXPECT_EQ(summary.bytes, 45U);
    EXPECT_EQ(summary.pieces, 3U);
    EXPECT_EQ(summary.most_bytes, 35U);
    EXPECT_EQ(summary.most_pieces, 2U);
    EXPECT_EQ(summary.ranks, 3U);
    EXPECT_EQ(summary.ranks_with_data, 2U);
    EXPECT_EQ(summary.fewest_variables, 1U);
    EXPECT_EQ(summary.most_variables, 1U);
}

TEST(Summary, GranuleDividesAllOffsetsAndLengths)
{
    EXPECT_EQ(of({{{64, 32}}, {{128, 8}}}).granule(), 8U);
    EXPECT_EQ(of({{{64, 32}}, {{128, 7}}}).granule(), 1U);
    EXPECT_EQ(of({}).granule(), 1U);
    Pattern pattern;
    pattern.add(Subarray{{8, 8}, {0, 2}, {8, 2}, {}, 16, 0});
    EXPECT_EQ(summarise(tapioca::pattern::variables_of(pattern)).granule(), 32U);
}

TEST(Histogram, CountsEveryByteInItsSlice)
{
    std::mt19937 random(6);
    for (int i = 0; i < 300; ++i) {
        Pattern pattern;
        std::vector<Extent> extents;
        std::int64_t at = pick(random, 0, 1000);
        for (int n = 0; n < 30; ++n) {
            auto const length = pick(random, 1, 200);
            extents.push_back({at, length});
            at += length + pick(random, 0, 100);
        }
        pattern.add(extents);
        pattern.add(Subarray{{20, 20}, {0, 0}, {10, 10}, {2, 2}, 4, pick(random, 0, 50)});
        auto const summary = summarise(tapioca::pattern::variables_of(pattern));
        auto const bins = static_cast<std::size_t>(pick(random, 1, 40));
        auto const counts = histogram(tapioca::pattern::variables_of(pattern), summary.begin, summary.end, bins);
        std::vector<std::uint64_t> expected(bins, 0);
        auto const width =
            (summary.end - summary.begin + static_cast<std::int64_t>(bins) - 1) / static_cast<std::int64_t>(bins);
        for (auto const& variable : tapioca::pattern::variables_of(pattern))
            for (auto const& place : test::walk(*variable))
                ++expected[static_cast<std::size_t>((place.file - summary.begin) / width)];
        ASSERT_EQ(counts, expected);
        ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), summary.bytes);
    }
}

TEST(Histogram, SurvivesTheWholeRangeOfOffsets)
{
    Pattern pattern;
    pattern.add({{0, 10}, {INT64_MAX - 10, 10}});
    auto const counts = histogram(tapioca::pattern::variables_of(pattern), 0, INT64_MAX, 512);
    EXPECT_EQ(counts.front(), 10U);
    EXPECT_EQ(counts.back(), 10U);
}

/// Lists and a subarray that lie among each other.
Pattern mixed(std::mt19937& random)
{
    Pattern pattern;
    std::vector<Extent> extents;
    std::int64_t at = pick(random, 0, 300);
    for (int n = 0; n < 15; ++n) {
        auto const length = pick(random, 1, 100);
        extents.push_back({at, length});
        at += length + pick(random, 0, 200);
    }
    pattern.add(extents);
    pattern.add(Subarray{{20, 20}, {0, 0}, {10, 5}, {2, 4}, 3, pick(random, 0, 900)});
    return pattern;
}

TEST(BytesBetween, CountsWhatLiesBetweenAnyEdges)
{
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
        auto const pattern = mixed(random);
        std::vector<std::int64_t> edges;
        for (auto left = pick(random, 2, 12); left > 0; --left) edges.push_back(pick(random, -200, 5000));
        if (pick(random, 0, 3) == 0) edges.push_back(edges.back());  // nothing lies between these
        if (pick(random, 0, 3) == 0) edges.push_back(INT64_MAX);
        std::sort(edges.begin(), edges.end());
        std::vector<std::uint64_t> expected(edges.size() - 1, 0);
        for (auto const& variable : tapioca::pattern::variables_of(pattern))
            for (auto const& place : test::walk(*variable))
                for (std::size_t e = 0; e + 1 < edges.size(); ++e)
                    expected[e] += place.file >= edges[e] && place.file < edges[e + 1] ? 1 : 0;
        ASSERT_EQ(bytes_between(tapioca::pattern::variables_of(pattern), edges), expected);
    }
}

TEST(Scale, CountsBytesInPartitionsAndTellsWhichOnesAreNear)
{
    std::mt19937_64 random(41);
    for (int trial = 0; trial < 300; ++trial) {
        auto const margin = pick(random, 1, 100);
        std::vector<std::int64_t> cuts;
        for (auto left = pick(random, 2, 12); left > 0; --left) cuts.push_back(pick(random, 0, 3000));
        if (pick(random, 0, 3) == 0) cuts.push_back(cuts.back());
        if (pick(random, 0, 3) == 0) cuts.push_back(INT64_MAX);
        std::sort(cuts.begin(), cuts.end());
        Scale scale(cuts, margin);
        std::vector<Scale::Share> expected(cuts.size() - 1);
        for (auto rank = pick(random, 1, 4); rank > 0; --rank) {
            Pattern pattern;
            for (auto left = pick(random, 0, 5); left > 0; --left)
                pattern.add({{pick(random, 0, 3000), pick(random, 0, 200)}});
            scale.add(tapioca::pattern::variables_of(pattern));
            for (auto const& variable : tapioca::pattern::variables_of(pattern))
                for (auto const& place : test::walk(*variable))
                    for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
                        expected[p].bytes += place.file >= cuts[p] && place.file < cuts[p + 1] ? 1 : 0;
                        expected[p].near_bytes +=
                            place.file >= cuts[p] - margin && place.file - margin < cuts[p + 1] ? 1 : 0;
                    }
        }
        auto const weights = scale.weights();
        ASSERT_EQ(weights.size(), expected.size());
        for (std::size_t p = 0; p < weights.size(); ++p) {
            ASSERT_EQ(weights[p].bytes, expected[p].bytes);
            ASSERT_EQ(weights[p].near_bytes, expected[p].near_bytes) << "partition " << p;
        }
        scale.clear();
        for (auto const& weight : scale.weights()) ASSERT_EQ(weight.near_bytes, 0U);
    }
}

TEST(BytesBetween, ReachesTheLastOffset)
{
    Pattern pattern;
    pattern.add({{0, 10}, {INT64_MAX - 10, 10}});
    EXPECT_EQ(bytes_between(tapioca::pattern::variables_of(pattern), {0, 5, INT64_MAX - 3, INT64_MAX}),
              (std::vector<std::uint64_t>{5, 12, 3}));
    EXPECT_EQ(bytes_between(tapioca::pattern::variables_of(pattern), {-50, 0, 1}), (std::vector<std::uint64_t>{0, 1}));
    EXPECT_EQ(bytes_between({}, {0, INT64_MAX}), (std::vector<std::uint64_t>{0}));
}

}  // namespace
}  // namespace tapioca::pattern
