// The ready-made patterns, block_of and HACC-IO: every byte belongs to exactly one rank. And Pattern itself.
#include <map>

#include <gtest/gtest.h>

#include "support/layouts.hpp"

namespace tapioca {
namespace {

/// How often each byte of the file is covered by the patterns.
std::map<std::int64_t, int> coverage(std::vector<Pattern> const& patterns)
{
    std::map<std::int64_t, int> result;
    for (auto const& pattern : patterns)
        for (auto const& variable : pattern.all()) {
            EXPECT_TRUE(variable->status());
            for (auto const& place : test::walk(*variable)) ++result[place.file];
        }
    return result;
}

void expect_exactly_once(std::vector<Pattern> const& patterns, std::int64_t begin, std::int64_t end)
{
    auto const covered = coverage(patterns);
    ASSERT_EQ(static_cast<std::int64_t>(covered.size()), end - begin);
    ASSERT_EQ(covered.begin()->first, begin);
    ASSERT_EQ(covered.rbegin()->first, end - 1);
    for (auto const& [offset, times] : covered) ASSERT_EQ(times, 1) << "byte " << offset;
}

TEST(BlockOf, CoversEveryElementOnceForAnyNumberOfRanks)
{
    std::vector<std::vector<std::int64_t>> const shapes = {{29}, {7, 5}, {13, 13}, {3, 9, 4}, {2, 3, 5, 4}, {1, 1, 40}};
    for (auto const& shape : shapes)
        for (int ranks = 1; ranks <= 13; ++ranks) {
            std::int64_t elements = 1;
            for (auto const n : shape) elements *= n;
            std::vector<Pattern> patterns(static_cast<std::size_t>(ranks));
            for (int rank = 0; rank < ranks; ++rank)
                patterns[static_cast<std::size_t>(rank)].add(block_of(shape, ranks, rank, 3, 100));
            expect_exactly_once(patterns, 100, 100 + elements * 3);
            ASSERT_FALSE(HasFatalFailure()) << ranks << " ranks, " << shape.size() << " dimensions";
        }
}

TEST(BlockOf, MakesBlocksAsSquareAsTheNumbersAllow)
{
    std::vector<std::int64_t> const square{100, 100};
    EXPECT_EQ(block_of(square, 4, 3, 8).count, (std::vector<std::int64_t>{50, 50}));
    EXPECT_EQ(block_of(square, 4, 3, 8).start, (std::vector<std::int64_t>{50, 50}));
    std::vector<std::int64_t> const tall{1000, 10};
    EXPECT_EQ(block_of(tall, 4, 1, 8).count, (std::vector<std::int64_t>{250, 10}));
    std::vector<std::int64_t> const cube{64, 64, 64};
    EXPECT_EQ(block_of(cube, 8, 7, 8).count, (std::vector<std::int64_t>{32, 32, 32}));
}

TEST(Hacc, CoversEveryByteOnceInBothLayouts)
{
    std::vector<std::int64_t> const particles = {5, 0, 17, 1, 9};
    for (auto const layout : {hacc::Layout::aos, hacc::Layout::soa}) {
        std::int64_t total = 0;
        for (auto const n : particles) total += n;
        std::vector<Pattern> patterns;
        std::int64_t before = 0;
        for (auto const mine : particles) {
            patterns.push_back(hacc::pattern(layout, mine, before, total, 24));
            EXPECT_EQ(patterns.back().variables(), 9U);
            EXPECT_EQ(patterns.back().bytes(7), static_cast<std::uint64_t>(mine * 8));
            before += mine;
        }
        expect_exactly_once(patterns, 24, 24 + total * hacc::particle_bytes);
    }
}

TEST(Hacc, PutsVariablesTogetherInSoaAndRanksInAos)
{
    auto const first = [](Pattern const& pattern, std::size_t var) {
        return test::walk(*pattern.all()[var]).front().file;
    };
    auto const soa = hacc::pattern(hacc::Layout::soa, 10, 20, 100);
    EXPECT_EQ(first(soa, 0), 20 * 4);
    EXPECT_EQ(first(soa, 1), 100 * 4 + 20 * 4);
    EXPECT_EQ(first(soa, 8), 100 * 36 + 20 * 2);
    auto const aos = hacc::pattern(hacc::Layout::aos, 10, 20, 100);
    EXPECT_EQ(first(aos, 0), 20 * 38);
    EXPECT_EQ(first(aos, 8), 20 * 38 + 10 * 36);
}

TEST(Hacc, RefusesNumbersThatCannotBe)
{
    auto const negative = hacc::pattern(hacc::Layout::soa, -1, 0, 10);
    EXPECT_FALSE(negative.all()[0]->status());
}

TEST(Pattern, CountsVariablesAndBytes)
{
    Pattern pattern;
    EXPECT_EQ(pattern.variables(), 0U);
    EXPECT_EQ(pattern.add({{0, 10}, {20, 5}}), 0U);
    EXPECT_EQ(pattern.add(Subarray{{4, 4}, {0, 0}, {2, 2}, {}, 8, 0}), 1U);
    EXPECT_EQ(pattern.add(std::vector<Extent>{}), 2U);
    EXPECT_EQ(pattern.variables(), 3U);
    EXPECT_EQ(pattern.bytes(0), 15U);
    EXPECT_EQ(pattern.bytes(1), 32U);
    EXPECT_EQ(pattern.bytes(2), 0U);
    EXPECT_EQ(pattern.bytes(3), 0U) << "there is no such variable";
}

TEST(Pattern, BookkeepingGrowsOnlyWithOwnIrregularExtents)
{
    Pattern pattern;
    pattern.add(Subarray{{1000, 1000, 1000}, {0, 0, 0}, {500, 500, 500}, {2, 2, 2}, 8, 0});
    auto const subarray = pattern.bookkeeping_bytes();
    EXPECT_LT(subarray, 512U);
    std::vector<Extent> extents;
    for (std::int64_t i = 0; i < 10'000; ++i) extents.push_back({i * 100, 1 + i % 7});
    pattern.add(extents);
    EXPECT_LE(pattern.bookkeeping_bytes(), subarray + 32 * 10'000);
}

}  // namespace
}  // namespace tapioca
