// ValidMap: marks and stretches against a list of bits, for any granule and origin.
#include "engine/valid_map.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tapioca::engine {
namespace {

class Fixture {
public:
    explicit Fixture(unsigned seed) : random_(seed) {}
    std::int64_t pick(std::int64_t low, std::int64_t high)
    {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }

    /// A round of `length` bytes from `origin` on, data in whole granules, cut where the round ends.
    void check(std::int64_t granule, std::int64_t origin, std::int64_t length, std::int64_t begin, std::int64_t end)
    {
        std::vector<std::uint64_t> words(static_cast<std::size_t>((length / granule + 2 + 63) / 64 + 1), 0);
        std::vector<bool> expected(static_cast<std::size_t>(length), false);
        ValidMap map(words.data(), static_cast<std::uint64_t>(granule), origin);
        auto const first = floor(begin, granule);
        auto const last = floor(end - 1, granule);
        for (auto marks = pick(0, 8); marks > 0; --marks) {
            // a strided run of whole granules within [begin, end)
            auto const size = pick(1, 5);
            auto const stride = size + pick(0, 4);
            auto const start = pick(first, last);
            auto const count = pick(1, 6);
            if (start + (count - 1) * stride + size - 1 > last) continue;
            pattern::PieceRun run{start * granule, size * granule, stride * granule, count, 0};
            if (run.offset < begin || run.offset + (count - 1) * run.stride + run.length > end) {
                run.count = 1;  // cut at the round's ends, as the cursor does
                run.length = std::min(run.offset + run.length, end) - std::max(run.offset, begin);
                run.offset = std::max(run.offset, begin);
                if (run.length <= 0) continue;
            }
            map.mark(run);
            for (std::int64_t i = 0; i < run.count; ++i)
                for (std::int64_t b = 0; b < run.length; ++b)
                    expected[static_cast<std::size_t>(run.offset + i * run.stride + b - origin)] = true;
        }
        std::vector<bool> found(expected.size(), false);
        std::int64_t reached = begin - 1;
        map.take(begin, end, [&](std::int64_t from, std::int64_t to) {
            EXPECT_GT(from, reached) << "stretches that touch must be one";
            EXPECT_LT(from, to);
            EXPECT_GE(from, begin);
            EXPECT_LE(to, end);
            reached = to;
            for (auto b = from; b < to; ++b) found[static_cast<std::size_t>(b - origin)] = true;
        });
        ASSERT_EQ(found, expected);
        for (auto const word : words) ASSERT_EQ(word, 0U) << "the map is left clear";
    }

    static std::int64_t floor(std::int64_t value, std::int64_t unit)
    {
        return (value % unit + unit) % unit == 0 ? value / unit : (value - (value % unit + unit) % unit) / unit;
    }

private:
    std::mt19937 random_;
};

TEST(ValidMap, FindsWhatWasMarkedForAnyGranuleAndOrigin)
{
    Fixture fixture(8);
    for (int i = 0; i < 4000 && !testing::Test::HasFatalFailure(); ++i) {
        auto const granule = fixture.pick(0, 1) ? std::int64_t{1} << fixture.pick(0, 6) : fixture.pick(1, 40);
        auto const origin = fixture.pick(-300, 300);
        auto const length = fixture.pick(granule, 900);
        auto const begin = origin + fixture.pick(0, std::min<std::int64_t>(length - 1, 50));
        auto const end = fixture.pick(begin + 1, origin + length);
        fixture.check(granule, origin, length, begin, end);
    }
}

TEST(ValidMap, WholeWordsAreOneStretch)
{
    std::vector<std::uint64_t> words(6, 0);
    ValidMap map(words.data(), 1, 0);
    map.mark({0, 300, 0, 1, 0});
    int stretches = 0;
    map.take(0, 320, [&](std::int64_t from, std::int64_t to) {
        EXPECT_EQ(from, 0);
        EXPECT_EQ(to, 300);
        ++stretches;
    });
    EXPECT_EQ(stretches, 1);
    for (auto const word : words) EXPECT_EQ(word, 0U);
}

TEST(ValidMap, NothingMarkedIsNothingFound)
{
    std::vector<std::uint64_t> words(4, 0);
    ValidMap(words.data(), 8, -12).take(-12, 1000, [](auto, auto) { ADD_FAILURE() << "there is nothing"; });
}

}  // namespace
}  // namespace tapioca::engine
