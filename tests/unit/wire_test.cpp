// Wire: runs are decoded as they were encoded, and take few bytes.
#include "engine/wire.hpp"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "support/layouts.hpp"

namespace tapioca::engine::wire {
namespace {

using Piece = pattern::PieceRun;  // Run is something of GoogleTest's in a test
using test::pick;

std::vector<Piece> decoded(std::span<std::byte const> bytes)
{
    std::vector<Piece> result;
    Runs runs(bytes);
    for (Piece run; runs.next(run);) result.push_back(run);
    return result;
}

std::vector<std::byte> encoded(std::vector<Piece> const& runs, std::int64_t origin = 0)
{
    std::vector<std::byte> bytes;
    encode(runs, origin, bytes);
    return bytes;
}

void expect_round_trip(std::vector<Piece> const& runs, std::int64_t origin)
{
    auto const back = decoded(encoded(runs, origin));
    ASSERT_EQ(back.size(), runs.size());
    std::int64_t buffer = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        EXPECT_EQ(back[i].offset, runs[i].offset - origin);
        EXPECT_EQ(back[i].length, runs[i].length);
        EXPECT_EQ(back[i].count, runs[i].count);
        if (runs[i].count > 1) {
            EXPECT_EQ(back[i].stride, runs[i].stride);
        }
        EXPECT_EQ(back[i].buffer, buffer) << "packed from 0 on";
        buffer += runs[i].length * runs[i].count;
    }
}

TEST(Wire, RunsComeOutAsTheyWentIn)
{
    std::mt19937_64 random(1);
    for (int trial = 0; trial < 2000; ++trial) {
        auto const origin = pick(random, 0, std::int64_t{1} << pick(random, 1, 55));
        std::vector<Piece> runs;
        auto at = origin + pick(random, 0, 1000);
        for (auto left = pick(random, 0, 20); left > 0; --left) {
            Piece run;
            run.offset = at;
            run.length = pick(random, 1, std::int64_t{1} << pick(random, 0, 24));
            run.count = pick(random, 0, 1) == 0 ? 1 : pick(random, 1, 1000);
            run.stride = run.length + pick(random, 0, std::int64_t{1} << pick(random, 0, 16));
            run.buffer = pick(random, 0, 1'000'000);
            at = run.offset + (run.count - 1) * run.stride + run.length;
            at += pick(random, 0, std::int64_t{1} << pick(random, 0, 20));
            runs.push_back(run);
        }
        expect_round_trip(runs, origin);
    }
}

TEST(Wire, RunsMayLieBeforeTheOriginAndBeforeEachOther)
{
    expect_round_trip({{100, 8, 8, 1, 0}, {20, 4, 4, 1, 0}, {0, 3, 10, 5, 0}, {24, 1, 1, 1, 0}}, 5000);
    expect_round_trip({{-100, 8, 8, 1, 0}, {-900, 1, 50, 3, 0}}, 0);
    // Pieces nearer than they are long overlap: the gap between them is negative.
    expect_round_trip({{10, 100, 40, 7, 0}}, 10);
}

TEST(Wire, RunsUpToTheEndOfAllOffsetsComeThrough)
{
    expect_round_trip({{INT64_MAX - 10, 10, 10, 1, 0}}, INT64_MAX - 10);
    expect_round_trip({{INT64_MAX - 10, 10, 10, 1, 0}}, 0);
    expect_round_trip({{0, INT64_MAX, INT64_MAX, 1, 0}}, 0);
}

TEST(Wire, ARegularPatternTakesSomeTenBytes)
{
    EXPECT_EQ(encoded({}).size(), 0U);
    EXPECT_LE(encoded({{1 << 20, 512, 4096, 2048, 0}}, 1 << 20).size(), 10U);
    EXPECT_LE(encoded({{(1 << 20) + 512 * 15, 512, 16 * 512, 8192, 0}}, 1 << 20).size(), 10U);
    // Some hundred bytes here and there: three to four a piece.
    std::vector<Piece> runs;
    for (std::int64_t i = 0; i < 1000; ++i) runs.push_back({i * 230 + i % 7, 100 + i % 20, 0, 1, 0});
    EXPECT_LE(encoded(runs).size(), 4000U);
}

TEST(Wire, EntriesAreTakenOneAfterTheOther)
{
    std::vector<std::byte> message;
    std::vector<std::size_t> const data_bytes = {10, 0, 300, 7};
    for (std::size_t i = 0; i < 4; ++i) {
        auto const runs = encoded({{static_cast<std::int64_t>(i) * 50, 10, 20, 1 + static_cast<std::int64_t>(i), 0}});
        EntryHeading heading;
        heading.run_bytes = static_cast<std::uint32_t>(runs.size());
        heading.way = i == 1 ? DataPath::none : i == 3 ? DataPath::apart : DataPath::inside;
        heading.rank = static_cast<std::int32_t>(i);
        heading.data_bytes = static_cast<std::uint32_t>(data_bytes[i]);
        auto const at = message.size();
        message.resize(at + sizeof heading);
        std::memcpy(message.data() + at, &heading, sizeof heading);
        message.insert(message.end(), runs.begin(), runs.end());
        if (heading.way == DataPath::inside) message.insert(message.end(), data_bytes[i], static_cast<std::byte>(i));
    }
    std::span<std::byte const> rest = message;
    for (std::size_t i = 0; i < 4; ++i) {
        auto const entry = take_entry(rest);
        EXPECT_EQ(entry.heading.rank, static_cast<int>(i));
        auto const runs = decoded(entry.runs);
        ASSERT_EQ(runs.size(), 1U);
        EXPECT_EQ(runs[0].offset, static_cast<std::int64_t>(i) * 50);
        EXPECT_EQ(entry.data.size(), entry.heading.way == DataPath::inside ? data_bytes[i] : 0);
        for (auto const byte : entry.data) EXPECT_EQ(byte, static_cast<std::byte>(i));
    }
    EXPECT_TRUE(rest.empty());
}

TEST(Wire, BytesThatAreNoMessageDoNoHarm)
{
    auto const bytes = [](std::initializer_list<int> values) {
        std::vector<std::byte> result;
        for (int const value : values) result.push_back(static_cast<std::byte>(value));
        return result;
    };
    EXPECT_TRUE(decoded(bytes({2, 0, 1})).empty()) << "no length";
    EXPECT_TRUE(decoded(bytes({2, 4, 0})).empty()) << "no pieces";
    EXPECT_TRUE(decoded(bytes({2, 4})).empty()) << "cut off";
    EXPECT_TRUE(decoded(std::vector<std::byte>(40, std::byte{0xff})).empty()) << "a number without an end";
    EXPECT_EQ(decoded(bytes({2, 4, 1, 2, 0, 1, 2, 4, 1})).size(), 1U) << "nothing behind what makes no sense";

    EntryHeading heading;
    heading.run_bytes = 1000;
    heading.data_bytes = 1000;
    std::vector<std::byte> message(sizeof heading + 5);
    std::memcpy(message.data(), &heading, sizeof heading);
    std::span<std::byte const> rest = message;
    EXPECT_EQ(take_entry(rest).runs.size(), 5U);
    EXPECT_TRUE(rest.empty());
    rest = std::span(message).first(3);
    (void)take_entry(rest);
    EXPECT_TRUE(rest.empty());
}

}  // namespace
}  // namespace tapioca::engine::wire
