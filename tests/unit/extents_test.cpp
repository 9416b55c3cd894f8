// Lists of extents: order, overlap, recognition of regular lists, and what is refused.
#include <chrono>
#include <map>

#include <gtest/gtest.h>

#include "pattern/read_once.hpp"
#include "support/layouts.hpp"

namespace tapioca::pattern {
namespace {

using test::pick;

/// File byte -> buffer byte, applying extents one after the other.
std::map<std::int64_t, std::int64_t> image(std::vector<Extent> const& extents)
{
    std::map<std::int64_t, std::int64_t> result;
    std::int64_t buffer = 0;
    for (auto const& [offset, length] : extents)
        for (std::int64_t i = 0; i < length; ++i) result[offset + i] = buffer++;
    return result;
}

void expect_same_image(std::vector<Extent> const& extents)
{
    auto const variable = Variable::from_extents(0, extents);
    ASSERT_TRUE(variable.status());
    std::map<std::int64_t, std::int64_t> found;
    for (auto const& place : test::walk(variable)) found[place.file] = place.buffer;
    EXPECT_EQ(found, image(extents));

    std::uint64_t bytes = 0;
    for (auto const& extent : extents) bytes += static_cast<std::uint64_t>(extent.length);
    EXPECT_EQ(variable.bytes(), bytes);
    for (auto const& layout : variable.layouts()) {  // each is ascending and free of overlap
        std::int64_t before = -1;
        for (auto const& place : test::places(layout)) {
            EXPECT_GT(place.file, before);
            before = place.file;
        }
    }
}

TEST(Extents, KeepTheirBytesInAnyOrder)
{
    expect_same_image({});
    expect_same_image({{5, 0}});
    expect_same_image({{5, 3}});
    expect_same_image({{20, 3}, {5, 3}, {0, 5}, {9, 0}, {8, 2}});
    expect_same_image({{0, 4}, {8, 4}, {4, 4}});
}

TEST(Extents, LaterOneWinsWhereTheyOverlap)
{
    expect_same_image({{0, 10}, {5, 10}});
    expect_same_image({{5, 10}, {0, 10}});
    expect_same_image({{0, 10}, {0, 10}, {0, 10}});
    expect_same_image({{0, 100}, {10, 5}, {30, 5}, {12, 20}, {0, 1}});
    std::mt19937 random(3);
    for (int i = 0; i < 600; ++i) {
        std::vector<Extent> extents;
        for (auto n = pick(random, 1, 14); n > 0; --n) extents.push_back({pick(random, 0, 60), pick(random, 0, 25)});
        expect_same_image(extents);
        if (HasFailure()) return;
    }
}

TEST(Extents, OverlapNeedsOnlyAsManyLayersAsItIsDeep)
{
    std::vector<Extent> pairs;
    for (int i = 0; i < 1000; ++i) pairs.push_back({i * 20, 15});
    for (int i = 0; i < 1000; ++i) pairs.push_back({i * 20 + 10, 15});
    EXPECT_EQ(Variable::from_extents(0, pairs).layouts().size(), 2U);
}

TEST(Extents, EqualPiecesAtEqualDistancesNeedNoList)
{
    std::vector<Extent> extents;
    for (int i = 0; i < 1000; ++i) extents.push_back({7 + i * 64, 16});
    auto const variable = Variable::from_extents(0, extents);
    ASSERT_EQ(variable.layouts().size(), 1U);
    EXPECT_EQ(variable.layouts()[0].entries.size(), 1U);
    EXPECT_LT(variable.bookkeeping_bytes(), 256U);
    expect_same_image(extents);

    extents[500].length = 15;
    EXPECT_EQ(Variable::from_extents(0, extents).layouts()[0].entries.size(), 1000U);
    expect_same_image(extents);
    extents[500] = {7 + 500 * 64 + 1, 16};
    EXPECT_EQ(Variable::from_extents(0, extents).layouts()[0].entries.size(), 1000U);
    expect_same_image(extents);
}

TEST(Extents, AMillionInAnyOrderAreQuickAndSmall)
{
    constexpr std::int64_t n = 1'000'000;
    std::vector<Extent> extents;
    for (std::int64_t i = 0; i < n; ++i) extents.push_back({(i * 7919 % n) * 64, 1 + i % 60});
    auto const start = std::chrono::steady_clock::now();
    auto const variable = Variable::from_extents(0, extents);
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LT(seconds, 10) << "sanitizers included";
    ASSERT_EQ(variable.layouts().size(), 1U);
    auto const bookkeeping = variable.bookkeeping_bytes();
    EXPECT_LE(bookkeeping, 32 * n);

    LayoutCursor cursor(variable.layouts()[0]);
    std::int64_t pieces = 0;
    std::int64_t before = -1;
    for (pattern::PieceRun run; cursor.next(no_offset, run); ++pieces) {
        EXPECT_GT(run.offset, before);
        before = run.offset;
    }
    EXPECT_EQ(pieces, n);
}

TEST(Extents, SortedMillionTakesAtMost32BytesEach)
{
    constexpr std::int64_t n = 1'000'000;
    std::vector<Extent> extents;
    for (std::int64_t i = 0; i < n; ++i) extents.push_back({i * 64, 1 + i % 60});
    EXPECT_LE(Variable::from_extents(0, extents).bookkeeping_bytes(), 32 * n);
}

TEST(Extents, OverlappingOnesTakeAtMost32BytesEachToo)
{
    constexpr std::int64_t n = 70'000;
    std::vector<Extent> extents;
    for (std::int64_t i = 0; i < n; ++i) extents.push_back({(i % 35'000) * 64, 1 + i % 60});
    EXPECT_LE(Variable::from_extents(0, extents).bookkeeping_bytes(), 32 * n);
}

/// What a reader of `extents` gets of a file of `file_bytes` bytes, whose byte i is i % 251 + 1; and how much.
void expect_read(std::vector<Extent> const& extents, std::int64_t file_bytes)
{
    std::vector<std::byte> expected;
    std::uint64_t received = 0;
    for (auto const& [offset, length] : extents)
        for (auto at = offset; at < offset + length; ++at) {
            expected.push_back(at < file_bytes ? static_cast<std::byte>(at % 251 + 1) : std::byte{0});
            received += at < file_bytes ? 1 : 0;
        }
    auto const variable = Variable::from_extents(0, extents);
    ASSERT_TRUE(variable.layered());
    ReadOnce const once(variable);
    std::vector<std::byte> found(expected.size());
    std::uint64_t read = 0;
    std::int64_t before = -1;
    for (auto const& place : test::places(once.layout())) {
        EXPECT_GT(place.file, before) << "every byte once, in order";
        before = place.file;
        if (place.file >= file_bytes) continue;
        found[static_cast<std::size_t>(place.buffer)] = static_cast<std::byte>(place.file % 251 + 1);
        ++read;
    }
    EXPECT_EQ(once.spread(found.data(), read), received);
    EXPECT_TRUE(found == expected);
    EXPECT_LE(once.layout().pieces(), static_cast<std::int64_t>(extents.size()));
    EXPECT_LT(once.copies(), extents.size());
}

TEST(Extents, AreReadInOneLayerHoweverTheyOverlap)
{
    expect_read({{0, 10}, {0, 10}, {0, 10}}, 100);
    expect_read({{0, 10}, {5, 10}, {12, 20}, {0, 1}, {3, 40}}, 20);
    expect_read({{0, 10}, {5, 10}}, 0);
    std::mt19937 random(9);
    for (int i = 0; i < 600; ++i) {
        std::vector<Extent> extents{{7, 3}, {8, 5}};
        for (auto n = pick(random, 1, 20); n > 0; --n) extents.push_back({pick(random, 0, 60), pick(random, 0, 30)});
        expect_read(extents, pick(random, 0, 100));
    }
    std::vector<Extent> const same(1000, {64, 8});
    EXPECT_EQ(Variable::from_extents(0, same).layouts().size(), 1000U) << "writing takes a layer each";
    EXPECT_EQ(ReadOnce(Variable::from_extents(0, same)).layout().pieces(), 1);
    EXPECT_FALSE(Variable::from_extents(0, std::vector<Extent>{{5, 5}, {0, 5}}).layered());
}

void expect_refused(std::vector<Extent> const& extents, std::vector<std::string> const& parts)
{
    auto const variable = Variable::from_extents(3, extents);
    ASSERT_FALSE(variable.status());
    EXPECT_EQ(variable.status().error().code, Errc::invalid_argument);
    EXPECT_EQ(variable.bytes(), 0U);
    EXPECT_TRUE(variable.layouts().empty());
    auto const& text = variable.status().error().text;
    EXPECT_TRUE(text.starts_with("variable 3: extent ")) << text;
    for (auto const& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Extents, NegativeNumbersAreRefusedByNameAndValue)
{
    expect_refused({{0, 5}, {-7, 5}}, {"extent 1", "-7"});
    expect_refused({{0, 5}, {7, -5}}, {"extent 1", "-5"});
    expect_refused({{INT64_MIN, 0}}, {"extent 0", "-9223372036854775808"});
}

TEST(Extents, WhatPasses63BitsIsRefused)
{
    expect_refused({{INT64_MAX, 1}}, {"9223372036854775807", "2^63"});
    expect_refused({{INT64_MAX - 10, 11}}, {"extent 0"});
    expect_refused({{0, INT64_MAX}, {0, 1}}, {"extent 1"});
    EXPECT_TRUE(Variable::from_extents(0, std::vector<Extent>{{INT64_MAX, 0}}).status());
    EXPECT_TRUE(Variable::from_extents(0, std::vector<Extent>{{INT64_MAX - 10, 10}}).status());
}

}  // namespace
}  // namespace tapioca::pattern
