// Typemap: random nests of loops and sequences, against a list of all their bytes.
#include "pattern/typemap.hpp"

#include <gtest/gtest.h>

#include "support/layouts.hpp"

namespace tapioca::pattern {
namespace {

using test::pick;
using test::Place;

/// A typemap and its displacements in data order.
struct Built {
    Typemap map;
    std::vector<std::int64_t> bytes;
};

Built looped(std::int64_t count, std::int64_t step, Built const& body)
{
    Built built{Typemap::loop(count, step, body.map), {}};
    for (std::int64_t i = 0; i < count; ++i)
        for (auto const byte : body.bytes) built.bytes.push_back(byte + i * step);
    return built;
}

Built in_sequence(std::vector<std::int64_t> const& displacements, std::vector<Built> const& bodies)
{
    std::vector<Typemap::Member> parts;
    Built built;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        parts.push_back({displacements[i], bodies[i].map});
        for (auto const byte : bodies[i].bytes) built.bytes.push_back(byte + displacements[i]);
    }
    built.map = Typemap::sequence(parts);
    return built;
}

Built block(std::int64_t length)
{
    Built built{Typemap::block(length), {}};
    for (std::int64_t i = 0; i < length; ++i) built.bytes.push_back(i);
    return built;
}

/// With gaps, overlaps, holes and backward steps; or such as a file view may have.
Built random_map(std::mt19937& random, int depth, bool ascending)
{
    if (depth == 0 || pick(random, 0, 7) == 0) return block(pick(random, ascending ? 1 : 0, 6));
    auto const low = [&](Built const& built) { return ascending ? built.map.end() - built.map.begin() : -5; };
    if (pick(random, 0, 2) > 0) {
        auto const body = random_map(random, depth - 1, ascending);
        auto const step = pick(random, low(body), low(body) + (ascending ? pick(random, 0, 1) * 6 : 20));
        auto const count = pick(random, 0, 9) == 0 ? pick(random, 1, 90) : pick(random, ascending ? 1 : 0, 4);
        return looped(body.bytes.size() < 300 ? count : 1, step, body);
    }
    std::vector<Built> bodies;
    std::vector<std::int64_t> displacements;
    std::int64_t at = pick(random, -10, 10);
    auto const same = random_map(random, depth - 1, ascending);
    for (auto parts = pick(random, 1, 4); parts > 0; --parts) {
        bodies.push_back(pick(random, 0, 1) == 0 ? same : random_map(random, depth - 1, ascending));
        auto const& body = bodies.back();
        displacements.push_back(ascending ? at - body.map.begin() : pick(random, -40, 40));
        at += body.map.end() - body.map.begin() + pick(random, 0, 1) * pick(random, 0, 7);
    }
    return in_sequence(displacements, bodies);
}

std::int64_t stretches(std::vector<std::int64_t> const& bytes)
{
    std::int64_t count = bytes.empty() ? 0 : 1;
    for (std::size_t i = 1; i < bytes.size(); ++i) count += bytes[i] != bytes[i - 1] + 1 ? 1 : 0;
    return count;
}

bool ascend(std::vector<std::int64_t> const& bytes)
{
    for (std::size_t i = 1; i < bytes.size(); ++i)
        if (bytes[i] <= bytes[i - 1]) return false;
    return true;
}

std::size_t at(std::int64_t position)
{
    return static_cast<std::size_t>(position);
}

void expect_facts(Built const& built)
{
    auto const& [map, bytes] = built;
    ASSERT_EQ(map.bytes(), static_cast<std::int64_t>(bytes.size()));
    ASSERT_EQ(map.begin(), bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end()));
    ASSERT_EQ(map.end(), bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()) + 1);
    ASSERT_EQ(map.blocks(), stretches(bytes));
    ASSERT_EQ(map.contiguous(), stretches(bytes) == 1);
    ASSERT_EQ(map.ascending(), ascend(bytes));
}

/// Packs and unpacks data bytes [from, to).
void expect_packs(Built const& built, std::int64_t from, std::int64_t to)
{
    auto const begin = built.map.begin();
    std::vector<std::byte> memory(at(built.map.end() - begin));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 256);
    std::vector<std::byte> packed(at(to - from) + 1, std::byte{0xee});
    pack(built.map, memory.data() - begin, from, to - from, packed.data());
    for (auto i = from; i < to; ++i) ASSERT_EQ(packed[at(i - from)], memory[at(built.bytes[at(i)] - begin)]);
    ASSERT_EQ(packed.back(), std::byte{0xee});

    std::vector<std::byte> back(memory.size());
    std::vector<std::byte> expected(memory.size());
    for (auto i = from; i < to; ++i) expected[at(built.bytes[at(i)] - begin)] = memory[at(built.bytes[at(i)] - begin)];
    unpack(built.map, back.data() - begin, from, to - from, packed.data());
    ASSERT_EQ(back, expected);
}

TEST(Typemap, KnowsItsBytesHoweverItIsNested)
{
    std::mt19937 random(51);
    int ascending = 0;
    for (int trial = 0; trial < 2000 && !HasFatalFailure(); ++trial) {
        auto built = random_map(random, static_cast<int>(pick(random, 0, 4)), trial % 2 == 0);
        auto const shift = pick(random, -30, 30);
        built.map = built.map.shifted(shift);
        for (auto& byte : built.bytes) byte += shift;
        expect_facts(built);
        ascending += built.map.ascending() ? 1 : 0;
        auto const from = pick(random, 0, built.map.bytes());
        expect_packs(built, 0, built.map.bytes());
        expect_packs(built, from, pick(random, from, built.map.bytes()));
    }
    EXPECT_GT(ascending, 900);
    EXPECT_LT(ascending, 1800);
}

TEST(Typemap, ManySmallTilesArePackedAsOneIs)
{
    expect_packs(looped(5000, 40, in_sequence({0, 10, 30}, {block(4), block(1), block(8)})), 7, 5000 * 13 - 3);
}

/// The bytes of an access, walked with cursors in every layout.
std::vector<Place> walked(Access const& access, std::int64_t expanded)
{
    auto const variable = variable_of(access, expanded);
    EXPECT_TRUE(variable.status());
    EXPECT_EQ(variable.bytes(), static_cast<std::uint64_t>(access.shape.bytes));
    std::vector<Place> all;
    for (auto const& layout : variable.layouts()) {
        LayoutCursor cursor(layout);
        std::int64_t before = -1;
        std::int64_t bytes = 0;
        for (PieceRun run; cursor.next(no_offset, run);)
            for (auto const& place : test::places(run)) {
                EXPECT_GT(place.file, before);
                before = place.file;
                all.push_back(place);
                ++bytes;
            }
        EXPECT_EQ(layout.end(), before + 1);
        if (layout.in_order) {
            EXPECT_EQ(layout.bytes_before(no_offset), bytes);
        }
    }
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.buffer < b.buffer; });
    return all;
}

TEST(TiledView, AccessesCoverTheBytesOfItsTiles)
{
    std::mt19937 random(52);
    for (int trial = 0; trial < 2000; ++trial) {
        auto const tile = random_map(random, static_cast<int>(pick(random, 0, 4)), true);
        auto const span = tile.map.end() - tile.map.begin();
        TiledView const view{pick(random, 0, 100) - tile.map.begin(), span + pick(random, 0, 1) * pick(random, 0, 9),
                             tile.map};
        auto const offset = [&](std::int64_t position) {
            auto const n = tile.map.bytes();
            return view.displacement + position / n * view.extent + tile.bytes[at(position % n)];
        };
        auto const from = pick(random, 0, 3 * tile.map.bytes());
        auto const bytes = pick(random, 0, 1) * pick(random, 0, 3 * tile.map.bytes()) + pick(random, 0, 9);
        ASSERT_EQ(view.offset_of(from), offset(from));
        auto const access = access_of(view, from, bytes);
        ASSERT_TRUE(access) << access.error().text;
        auto const places = walked(*access, pick(random, 0, 1) * pick(random, 0, 40));
        ASSERT_EQ(places.size(), at(bytes)) << "trial " << trial;
        for (std::int64_t i = 0; i < bytes; ++i)
            ASSERT_EQ(places[at(i)], (Place{offset(from + i), i})) << "trial " << trial;

        // The same further on, by tiles and by displacement, is the same shape.
        auto const shift = pick(random, 0, 50);
        auto const tiles = pick(random, 0, 5);
        TiledView const moved{view.displacement + shift, view.extent, view.tile};
        auto const later = access_of(moved, from + tiles * tile.map.bytes(), bytes);
        ASSERT_TRUE(later);
        ASSERT_EQ(later->shape, access->shape);
        if (bytes > 0) {
            ASSERT_EQ(later->origin - access->origin, shift + tiles * view.extent);
        }
    }
}

TEST(Typemap, EqualStructuresAreEqualHoweverTheyWereBuilt)
{
    auto const int4 = Typemap::block(4);
    auto const expect_same = [](Typemap const& a, Typemap const& b) {
        EXPECT_EQ(a, b);
        EXPECT_EQ(a.hash(), b.hash());
    };
    expect_same(Typemap::loop(10, 4, int4), Typemap::block(40));
    expect_same(Typemap::loop(3, 40, Typemap::loop(10, 4, int4)), Typemap::block(120));
    expect_same(Typemap::loop(1, 77, int4), int4);
    expect_same(Typemap::loop(0, 8, int4), Typemap());
    expect_same(Typemap().shifted(9), Typemap::sequence({{5, Typemap()}}));
    expect_same(Typemap::loop(50, 160, Typemap::loop(20, 8, int4)), Typemap::loop(1000, 8, int4));
    for (auto const n : {3, 30, 300}) {
        std::vector<Typemap::Member> regular;
        std::vector<Typemap::Member> halves;
        std::vector<Typemap::Member> pairs;
        for (int i = 0; i < n; ++i) {
            regular.push_back({i * 12, int4});
            halves.push_back({i * 12, Typemap::block(2)});
            halves.push_back({i * 12 + 2, Typemap::block(2)});
            pairs.push_back({i * 40, Typemap::sequence({{0, int4}, {10, Typemap::block(1)}})});
        }
        expect_same(Typemap::sequence(regular), Typemap::loop(n, 12, int4));
        expect_same(Typemap::sequence(halves), Typemap::loop(n, 12, int4));
        expect_same(Typemap::sequence(pairs), Typemap::loop(n, 40, pairs[0].map));
        expect_same(Typemap::sequence({{8, Typemap::sequence(pairs)}}).shifted(-8), Typemap::sequence(pairs));
    }
    // Few blocks are the same list from any nest of loops.
    expect_same(Typemap::loop(2, 100, Typemap::loop(3, 8, int4)),
                Typemap::sequence({{0, Typemap::loop(3, 8, int4)}, {100, int4}, {108, Typemap::loop(2, 8, int4)}}));
    EXPECT_NE(Typemap::loop(2, 8, int4), Typemap::loop(2, 9, int4));
    EXPECT_NE(Typemap::loop(200, 8, int4), Typemap::loop(201, 8, int4));
    EXPECT_NE(int4, int4.shifted(1));
}

TEST(TiledView, ShapesOfDifferentTilesThatMeanTheSameAreTheSame)
{
    auto const piece = Typemap::block(8);
    TiledView const fine{100, 32, piece};
    TiledView const coarse{100, 32 * 500, Typemap::loop(500, 32, piece)};
    auto const a = access_of(fine, 4, 100'000);
    auto const b = access_of(coarse, 4 + 8 * 700, 100'000);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->shape, b->shape);
    EXPECT_EQ(b->origin - a->origin, 32 * 700);
    // Bytes that touch are contiguous, whatever lies around them.
    EXPECT_EQ(access_of(fine, 8 * 5 + 2, 6)->shape, access_of({0, 1, Typemap::block(1)}, 7, 6)->shape);
    EXPECT_EQ(access_of({0, 24, Typemap::loop(3, 8, piece)}, 5, 300)->shape,
              access_of({77, 1, Typemap::block(1)}, 9, 300)->shape);
}

TEST(TiledView, TilesTakeTheSameMemoryHoweverManyThereAre)
{
    auto const tile = Typemap::sequence({{0, Typemap::block(4)}, {6, Typemap::block(1)}, {9, Typemap::block(2)}});
    auto const variable = [&](std::int64_t tiles) {
        return variable_of(access_of({0, 20, tile}, 5, tiles * 7).value());
    };
    auto const large = variable(1'000'000'000);
    EXPECT_EQ(large.bookkeeping_bytes(), variable(1'000'000).bookkeeping_bytes());
    EXPECT_LT(large.bookkeeping_bytes(), 1024U);
    EXPECT_EQ(large.bytes(), 7'000'000'000U);
    EXPECT_LE(large.layouts().size(), 2U) << "the body; the head and the tail";
}

TEST(TiledView, LongLoopsInASequenceGetLayoutsOfTheirOwn)
{
    constexpr std::int64_t n = 1'000'000;
    auto const first = Typemap::loop(n, 16, Typemap::block(4));
    auto const second = Typemap::loop(n, 32, Typemap::block(8));
    auto const tile =
        Typemap::sequence({{0, Typemap::block(3)}, {10, first}, {20 * n, second}, {60 * n, Typemap::block(5)}});
    auto const variable = variable_of(access_of({0, 70 * n, tile}, 0, 3 * tile.bytes()).value());
    ASSERT_EQ(variable.layouts().size(), 3U);
    EXPECT_LT(variable.bookkeeping_bytes(), 2048U);
    std::int64_t pieces = 0;
    for (auto const& layout : variable.layouts()) pieces += layout.pieces();
    EXPECT_EQ(pieces, 3 * (2 * n + 2));
    LayoutCursor cursor(variable.layouts()[0]);
    cursor.seek(70 * n);
    pattern::PieceRun run;
    ASSERT_TRUE(cursor.next(no_offset, run));
    EXPECT_EQ(run.offset, 70 * n + 10);
    EXPECT_EQ(run.count, n);
    EXPECT_EQ(run.buffer, tile.bytes() + 3);
}

TEST(TiledView, ManyBlocksAreOneList)
{
    constexpr std::int64_t n = 175'000;
    std::vector<Typemap::Member> parts;
    for (std::int64_t i = 0; i < n; ++i) parts.push_back({i * 50 + i % 7, Typemap::block(8 + i % 3)});
    auto const tile = Typemap::sequence(parts);
    EXPECT_EQ(tile.blocks(), n);
    EXPECT_TRUE(tile.ascending());
    auto const variable = variable_of(access_of({0, 50 * n, tile}, 0, tile.bytes()).value());
    ASSERT_EQ(variable.layouts().size(), 1U);
    EXPECT_EQ(variable.layouts()[0].entries.size(), at(n));
    EXPECT_TRUE(variable.layouts()[0].in_order);
    EXPECT_LE(variable.bookkeeping_bytes(), 32U * n);
}

TEST(TiledView, RefusesWhatLayoutsCannotHave)
{
    auto const expect_refused = [](TiledView const& view, std::int64_t from, std::int64_t bytes,
                                   std::string const& why) {
        auto const access = access_of(view, from, bytes);
        ASSERT_FALSE(access);
        EXPECT_EQ(access.error().code, Errc::unsupported);
        EXPECT_NE(access.error().text.find(why), std::string::npos) << access.error().text;
    };
    auto const int4 = Typemap::block(4);
    expect_refused({0, 100, Typemap::loop(3, -8, int4)}, 0, 4, "do not ascend");
    expect_refused({0, 100, Typemap::loop(3, 2, int4)}, 0, 4, "do not ascend");
    expect_refused({0, 10, Typemap::loop(3, 8, int4)}, 0, 13, "overlap");
    EXPECT_TRUE(access_of({0, 10, Typemap::loop(3, 8, int4)}, 0, 12)) << "within one tile";
    expect_refused({0, 10, Typemap()}, 0, 1, "no bytes");
    EXPECT_TRUE(access_of({0, 10, Typemap()}, 0, 0));
    expect_refused({0, 10, int4.shifted(-3)}, 0, 8, "before the file");
    EXPECT_TRUE(access_of({0, 10, int4.shifted(-3)}, 4, 8)) << "only the first tile begins before the file";
    expect_refused({0, INT64_MAX / 2, int4}, 0, 13, "2^63");
    expect_refused({INT64_MAX - 3, 4, int4}, 0, 4, "2^63");
    expect_refused({0, 1, Typemap::block(1)}, INT64_MAX, 2, "2^63");
    expect_refused({0, 1, Typemap::block(1)}, -1, 2, "2^63");
    EXPECT_EQ(access_of({INT64_MAX - 4, 4, int4}, 0, 4)->origin, INT64_MAX - 4);
}

}  // namespace
TEST(Shape, HasAsManyPiecesAsTheViewIsCutInto)
{
    auto const pieces = [](TiledView const& view, std::int64_t from, std::int64_t bytes) {
        return access_of(view, from, bytes)->shape.pieces();
    };
    EXPECT_EQ(Shape{}.pieces(), 0);
    EXPECT_EQ(pieces({}, 7, std::int64_t{1} << 40), 1);
    TiledView const vector{100, 64, Typemap::block(16)};  // 16 of every 64 bytes
    EXPECT_EQ(pieces(vector, 0, 16), 1);
    EXPECT_EQ(pieces(vector, 0, 160), 10);
    TiledView const rows{0, 4096, Typemap::loop(8, 512, Typemap::block(100))};
    EXPECT_EQ(pieces(rows, 0, 800), 8);
    EXPECT_EQ(pieces(rows, 0, 2400), 24);
    EXPECT_EQ(pieces(rows, 3, 10), 1);
}

}  // namespace tapioca::pattern
