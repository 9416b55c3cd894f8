// Subarrays: their bytes against nested loops, their size in memory, and everything that is refused.
#include <gtest/gtest.h>

#include "support/layouts.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::pattern {
namespace {

using test::pick;
using test::Place;

/// The bytes in the order of the elements, by counting through all indices.
std::vector<Place> brute_force(Subarray const& array)
{
    std::vector<Place> result;
    for (auto const& [offset, length] : test::expand(array))
        for (std::int64_t i = 0; i < length; ++i)
            result.push_back({offset + i, static_cast<std::int64_t>(result.size())});
    return result;
}

Subarray random_subarray(std::mt19937& random, int dimensions)
{
    Subarray array;
    array.element_size = pick(random, 1, 5);
    array.file_offset = pick(random, 0, 3) * pick(random, 0, 100);
    bool const strided = pick(random, 0, 1) == 1;
    for (int d = 0; d < dimensions; ++d) {
        auto const shape = pick(random, 1, 7);
        auto const stride = strided ? pick(random, 1, 3) : 1;
        auto const start = pick(random, 0, 3) == 0 ? 0 : pick(random, 0, shape - 1);
        auto const most = (shape - 1 - start) / stride + 1;
        array.shape.push_back(shape);
        array.start.push_back(start);
        array.count.push_back(pick(random, 0, 2) == 0 ? most : pick(random, pick(random, 0, 9) == 0 ? 0 : 1, most));
        if (strided) array.stride.push_back(stride);
    }
    return array;
}

TEST(Subarray, HasTheBytesOfItsElementsInFrom1To5Dimensions)
{
    std::mt19937 random(4);
    for (int i = 0; i < 2500; ++i) {
        auto const array = random_subarray(random, 1 + i % 5);
        auto const variable = Variable::from_subarray(0, array);
        ASSERT_TRUE(variable.status()) << variable.status().error().text;
        auto const expected = brute_force(array);
        ASSERT_EQ(test::walk(variable), expected) << "subarray " << i;
        ASSERT_EQ(variable.bytes(), expected.size());
        ASSERT_LE(variable.layouts().size(), 1U);
    }
}

TEST(Subarray, WholeRowsAreOnePiece)
{
    auto const whole = Variable::from_subarray(0, {{10, 20, 30}, {0, 0, 0}, {10, 20, 30}, {}, 8, 64});
    ASSERT_EQ(whole.layouts().size(), 1U);
    auto const& layout = whole.layouts()[0];
    EXPECT_EQ(layout.pieces(), 1);
    EXPECT_EQ(layout.entries[0].length, 10 * 20 * 30 * 8);
    auto const planes = Variable::from_subarray(0, {{10, 20, 30}, {2, 0, 0}, {3, 20, 30}, {}, 8, 0});
    EXPECT_EQ(planes.layouts()[0].pieces(), 1);
    auto const rows = Variable::from_subarray(0, {{10, 20, 30}, {2, 5, 0}, {3, 4, 30}, {}, 8, 0});
    EXPECT_EQ(rows.layouts()[0].pieces(), 3);
}

TEST(Subarray, TakesTheSameMemoryHoweverManyPiecesItHas)
{
    auto const bookkeeping = [](std::int64_t n) {
        Subarray const array{{n, n, n, n}, {0, 0, 0, 0}, {n / 2, n / 2, n / 2, n / 2}, {2, 2, 2, 2}, 8, 0};
        auto const variable = Variable::from_subarray(0, array);
        EXPECT_EQ(variable.layouts()[0].pieces(), n * n * n * n / 16);
        return variable.bookkeeping_bytes();
    };
    EXPECT_EQ(bookkeeping(4), bookkeeping(1000));
    EXPECT_LT(bookkeeping(1000), 512U);
}

TEST(Subarray, EmptyOnesHaveNoData)
{
    for (auto const& array : {Subarray{{10}, {0}, {0}, {}, 8, 0}, Subarray{{0}, {0}, {0}, {}, 8, 0},
                              Subarray{{10, 10}, {3, 10}, {5, 0}, {}, 8, 0},
                              Subarray{{0, 1LL << 62, 1LL << 62}, {0, 0, 0}, {0, 1, 1}, {}, 8, 0},
                              Subarray{{4, 4}, {INT64_MAX, 0}, {0, 4}, {INT64_MAX, 1}, 8, 0}}) {
        auto const variable = Variable::from_subarray(0, array);
        EXPECT_TRUE(variable.status());
        EXPECT_EQ(variable.bytes(), 0U);
        EXPECT_TRUE(test::walk(variable).empty());
    }
}

TEST(Subarray, ReachesFarIntoHugeArrays)
{
    // 2^60 elements of 4 bytes: the last ones lie just below 2^62 bytes.
    Subarray const array{{1LL << 30, 1LL << 30}, {(1LL << 30) - 2, (1LL << 30) - 3}, {2, 3}, {}, 4, 0};
    auto const variable = Variable::from_subarray(0, array);
    ASSERT_TRUE(variable.status());
    EXPECT_EQ(variable.bytes(), 24U);
    EXPECT_EQ(test::walk(variable).back().file, (1LL << 62) - 1);
}

void expect_refused(Subarray const& array, std::vector<std::string> const& parts)
{
    auto const variable = Variable::from_subarray(2, array);
    ASSERT_FALSE(variable.status());
    EXPECT_EQ(variable.status().error().code, Errc::invalid_argument);
    EXPECT_EQ(variable.bytes(), 0U);
    auto const& text = variable.status().error().text;
    EXPECT_TRUE(text.starts_with("variable 2: subarray ")) << text;
    for (auto const& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Subarray, EveryBadInputIsRefusedWithItsValue)
{
    expect_refused({{}, {}, {}, {}, 1, 0}, {"0 dimensions"});
    std::vector<std::int64_t> const ones(33, 1);
    std::vector<std::int64_t> const zeros(33, 0);
    expect_refused({ones, zeros, ones, {}, 1, 0}, {"33 dimensions"});
    expect_refused({{4, 4}, {0}, {4, 4}, {}, 1, 0}, {"2 dimensions in shape, but 1 in start"});
    expect_refused({{4, 4}, {0, 0}, {4}, {}, 1, 0}, {"1 in count"});
    expect_refused({{4, 4}, {0, 0}, {4, 4}, {1}, 1, 0}, {"1 in stride"});
    expect_refused({{4}, {0}, {4}, {}, 0, 0}, {"element size 0"});
    expect_refused({{4}, {0}, {4}, {}, -8, 0}, {"element size -8"});
    expect_refused({{4}, {0}, {4}, {}, 1, -1}, {"file offset -1"});
    expect_refused({{-4}, {0}, {0}, {}, 1, 0}, {"shape -4", "dimension 0"});
    expect_refused({{4, 4}, {0, -1}, {4, 4}, {}, 1, 0}, {"start -1", "dimension 1"});
    expect_refused({{4, 4}, {0, 0}, {4, -2}, {}, 1, 0}, {"count -2", "dimension 1"});
    expect_refused({{4, 4}, {0, 0}, {4, 4}, {1, 0}, 1, 0}, {"stride 0", "dimension 1"});
    expect_refused({{4, 4}, {0, 1}, {4, 4}, {}, 1, 0}, {"leaves the array in dimension 1"});
    expect_refused({{4, 4}, {4, 0}, {1, 4}, {}, 1, 0}, {"leaves the array in dimension 0"});
    expect_refused({{10}, {0}, {4}, {4}, 1, 0}, {"leaves the array", "stride 4"});
    expect_refused({{10}, {1}, {INT64_MAX}, {1}, 1, 0}, {"leaves the array"});
    expect_refused({{10}, {1}, {3}, {INT64_MAX}, 1, 0}, {"leaves the array"});
    expect_refused({{1LL << 31, 1LL << 31}, {0, 0}, {1, 1}, {}, 4, 0}, {"passes 2^63"});
    expect_refused({{1LL << 31, 1LL << 30}, {0, 0}, {1, 1}, {}, 4, INT64_MAX - 5}, {"passes 2^63"});
}

}  // namespace
}  // namespace tapioca::pattern
