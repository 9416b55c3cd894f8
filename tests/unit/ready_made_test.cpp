// block_of(): every byte belongs to exactly one rank. And Pattern itself.
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
        for (auto const& variable : tapioca::pattern::variables_of(pattern)) {
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
                patterns[static_cast<std::size_t>(rank)].add(
                    block_of({.shape = shape, .ranks = ranks, .rank = rank, .element_size = 3, .file_offset = 100}));
            expect_exactly_once(patterns, 100, 100 + elements * 3);
            ASSERT_FALSE(HasFatalFailure()) << ranks << " ranks, " << shape.size() << " dimensions";
        }
}

TEST(BlockOf, MakesBlocksAsSquareAsTheNumbersAllow)
{
    std::vector<std::int64_t> const square{100, 100};
    EXPECT_EQ(block_of({.shape = square, .ranks = 4, .rank = 3, .element_size = 8}).count,
              (std::vector<std::int64_t>{50, 50}));
    EXPECT_EQ(block_of({.shape = square, .ranks = 4, .rank = 3, .element_size = 8}).start,
              (std::vector<std::int64_t>{50, 50}));
    std::vector<std::int64_t> const tall{1000, 10};
    EXPECT_EQ(block_of({.shape = tall, .ranks = 4, .rank = 1, .element_size = 8}).count,
              (std::vector<std::int64_t>{250, 10}));
    std::vector<std::int64_t> const cube{64, 64, 64};
    EXPECT_EQ(block_of({.shape = cube, .ranks = 8, .rank = 7, .element_size = 8}).count,
              (std::vector<std::int64_t>{32, 32, 32}));
}

TEST(BlockOf, GoesThroughAGridAsElementsThroughTheArray)
{
    auto const block = block_of({.shape = {10, 9}, .grid = {2, 3}, .rank = 4});
    EXPECT_EQ(block.start, (std::vector<std::int64_t>{5, 3}));
    EXPECT_EQ(block.count, (std::vector<std::int64_t>{5, 3}));
    for (auto const& shape : {std::vector<std::int64_t>{7, 5}, {13, 4}}) {
        std::vector<Pattern> patterns(6);
        for (int rank = 0; rank < 6; ++rank)
            patterns[static_cast<std::size_t>(rank)].add(block_of({.shape = shape, .grid = {3, 2}, .rank = rank}));
        expect_exactly_once(patterns, 0, shape[0] * shape[1]);
    }
}

TEST(BlockOf, MistakesMakeASubarrayThatDeclareRefuses)
{
    for (Blocks const& bad : std::vector<Blocks>{{.shape = {8, 8}, .rank = 0},
                                                 {.shape = {8, 8}, .ranks = 4},
                                                 {.shape = {8, 8}, .ranks = 4, .rank = 4},
                                                 {.shape = {8, 8}, .grid = {2}, .rank = 0},
                                                 {.shape = {8, 8}, .grid = {2, 0}, .rank = 0},
                                                 {.shape = {8, 8}, .grid = {2, 2}, .rank = 4},
                                                 {.shape = {8, 8}, .grid = {2, 2}, .ranks = 5, .rank = 0},
                                                 {.shape = {}, .ranks = 1, .rank = 0}})
        EXPECT_FALSE(pattern::Variable::from_subarray(0, block_of(bad)).status());
}

TEST(Pattern, TypedVariablesHaveTheSizeOfTheirTypeAndANameInMessages)
{
    Pattern pattern;
    auto const u = pattern.add<double>("u", block_of({.shape = {4, 4}, .ranks = 1, .rank = 0}));
    auto const id = pattern.add<std::uint16_t>("id", {{0, 6}});
    EXPECT_EQ(u.number(), 0U);
    EXPECT_EQ(id.number(), 1U);
    EXPECT_EQ(pattern.bytes(u.number()), 4U * 4 * sizeof(double));
    EXPECT_EQ(pattern.bytes(id.number()), 6U);
    EXPECT_EQ(pattern::Variable::from_extents(3, {}, "pressure").called(3), "variable 3 'pressure'");
    auto const bad = pattern::Variable::from_extents(3, std::vector<Extent>{{-1, 8}}, "pressure");
    ASSERT_FALSE(bad.status());
    EXPECT_TRUE(bad.status().error().text.starts_with("variable 3 'pressure': extent 0")) << bad.status().error().text;
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
