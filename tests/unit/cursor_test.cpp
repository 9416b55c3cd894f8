// LayoutCursor: walking regular layouts, lists and lists in loops, against a list of all their bytes.
#include <gtest/gtest.h>

#include "support/layouts.hpp"

namespace tapioca::pattern {
namespace {

using test::pick;
using test::Place;

std::vector<Layout::ListItem> random_entries(std::mt19937& random, std::int64_t most)
{
    std::vector<Layout::ListItem> result;
    std::int64_t offset = pick(random, 0, 20);
    std::int64_t buffer = pick(random, 0, 5);
    for (auto entries = pick(random, most == 1 ? 1 : 0, most); entries > 0; --entries) {
        auto const length = pick(random, 1, 9);
        result.push_back({offset, length, buffer});
        offset += length + pick(random, 0, 6) * pick(random, 0, 1);
        buffer += length + pick(random, 0, 3);
    }
    return result;
}

Layout random_layout(std::mt19937& random, std::int64_t most_dimensions, std::int64_t most_entries)
{
    Layout layout;
    layout.base = pick(random, 0, 50);
    layout.buffer = pick(random, 0, 50);
    layout.entries = random_entries(random, most_entries);
    if (layout.entries.empty()) return layout;
    // of the faster dimensions, first byte to last
    auto span = layout.entries.back().offset + layout.entries.back().length - layout.entries.front().offset;
    for (auto dimensions = pick(random, 0, most_dimensions); dimensions > 0; --dimensions) {
        Layout::Dimension const dimension{pick(random, 1, 4), span + pick(random, 0, 5), pick(random, 0, 100)};
        layout.dimensions.insert(layout.dimensions.begin(), dimension);
        span += (dimension.count - 1) * dimension.step;
    }
    return layout;
}

/// Walks the cursor from where it stands to the end with random limits.
void expect_walk(LayoutCursor cursor, std::vector<Place> const& expected, std::mt19937& random)
{
    std::size_t at = 0;
    std::int64_t limit = 0;
    while (at < expected.size()) {
        ASSERT_EQ(cursor.position(), expected[at].file);
        limit = std::max(limit, expected[at].file) + pick(random, 0, 12);
        if (pick(random, 0, 9) == 0) limit = no_offset;
        for (PieceRun run; cursor.next(limit, run);)
            for (auto const& place : test::places(run)) {
                ASSERT_LT(at, expected.size());
                ASSERT_EQ(place, expected[at]);
                ASSERT_LT(place.file, limit);
                ++at;
            }
        ASSERT_GE(cursor.position(), limit);
    }
    EXPECT_EQ(cursor.position(), no_offset);
    PieceRun run;
    EXPECT_FALSE(cursor.next(no_offset, run));
}

void expect_all(Layout const& layout, std::mt19937& random)
{
    auto const all = test::places(layout);
    expect_walk(LayoutCursor(layout), all, random);
    auto const last = all.empty() ? 10 : all.back().file;
    for (int i = 0; i < 12; ++i) {
        auto const offset = pick(random, -3, last + 5);
        auto const from = std::find_if(all.begin(), all.end(), [&](auto const& place) { return place.file >= offset; });
        LayoutCursor cursor(layout);
        cursor.seek(offset);
        expect_walk(cursor, {from, all.end()}, random);
        if (testing::Test::HasFatalFailure()) return;
        cursor.seek(no_offset);  // seeks go both ways
        EXPECT_EQ(cursor.position(), no_offset);
        cursor.seek(0);
        EXPECT_EQ(cursor.position(), all.empty() ? no_offset : all.front().file);
    }
}

TEST(LayoutCursor, WalksRandomRegularLayouts)
{
    std::mt19937 random(1);
    for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) expect_all(random_layout(random, 4, 1), random);
}

TEST(LayoutCursor, WalksRandomLists)
{
    std::mt19937 random(2);
    for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) expect_all(random_layout(random, 0, 12), random);
}

TEST(LayoutCursor, WalksRandomListsInLoops)
{
    std::mt19937 random(3);
    for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) expect_all(random_layout(random, 3, 4), random);
}

TEST(LayoutCursor, CutsAPieceAtTheLimit)
{
    Layout const layout{0, 0, {}, {{10, 10, 0}, {30, 5, 10}}};
    LayoutCursor cursor(layout);
    pattern::PieceRun run;
    ASSERT_TRUE(cursor.next(13, run));
    EXPECT_EQ(run.offset, 10);
    EXPECT_EQ(run.length, 3);
    EXPECT_FALSE(cursor.next(13, run));
    ASSERT_TRUE(cursor.next(100, run));
    EXPECT_EQ(run.offset, 13);
    EXPECT_EQ(run.length, 7);
    EXPECT_EQ(run.buffer, 3);
}

TEST(LayoutCursor, TakesARowOfEqualPiecesAtOnce)
{
    Layout const layout{100, 0, {{3, 1000, 40}, {5, 16, 8}}, {{0, 8, 0}}};
    LayoutCursor cursor(layout);
    pattern::PieceRun run;
    ASSERT_TRUE(cursor.next(no_offset, run));
    EXPECT_EQ(run.count, 5);
    EXPECT_EQ(run.stride, 16);
    ASSERT_TRUE(cursor.next(1100 + 16 * 2 + 8, run)) << "the limit ends with a whole piece";
    EXPECT_EQ(run.offset, 1100);
    EXPECT_EQ(run.count, 3);
    EXPECT_EQ(run.buffer, 40);
}

TEST(LayoutCursor, ReachesTheLastOffsetThereIs)
{
    constexpr auto last = no_offset;
    Layout const listed{0, 0, {}, {{last - 7, 7, 0}}};
    Layout const regular{last - 70, 0, {{10, 7, 7}}, {{0, 7, 0}}};
    for (auto const* const layout : {&listed, &regular}) {
        LayoutCursor cursor(*layout);
        cursor.seek(last - 3);
        pattern::PieceRun run;
        ASSERT_TRUE(cursor.next(no_offset, run));
        EXPECT_EQ(run.offset, last - 3);
        EXPECT_EQ(run.length, 3);
        EXPECT_FALSE(cursor.next(no_offset, run));
    }
}

}  // namespace
}  // namespace tapioca::pattern
