// Merging: every byte comes from the latest request that wrote it, compared with a model that writes them one after the
// other.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "stage/merge.hpp"

namespace {

using namespace tapioca;
using stage::Merge;
using stage::Merged;

constexpr std::int64_t file_bytes = 400;

class Random {
public:
    explicit Random(unsigned number) : engine_(number) {}
    std::int64_t operator()(std::int64_t from, std::int64_t to)
    {
        return std::uniform_int_distribution<std::int64_t>(from, to)(engine_);
    }
    template <class T>
    void shuffle(std::vector<T>& values)
    {
        std::shuffle(values.begin(), values.end(), engine_);
    }

private:
    std::mt19937 engine_;
};

struct Request {
    pattern::Variable variable;
    bool contiguous = false;
    bool left_out = false;
    std::size_t place = 0;  ///< of its data
};

Request random_request(Random& random)
{
    bool const left_out = random(0, 5) == 0;
    switch (random(0, 3)) {
    case 0: {
        auto const start = random(0, 5);
        auto const stride = random(1, 3);
        Subarray const array{{10, 10},    {start, random(0, 3)}, {random(1, 2), random(1, 3)},
                             {stride, 2}, random(1, 3),          random(0, 80)};
        return {pattern::Variable::from_subarray(0, array), false, left_out};
    }
    case 1: {
        std::vector<Extent> list(static_cast<std::size_t>(random(1, 5)));
        for (auto& extent : list) extent = {random(0, file_bytes - 30), random(1, 30)};
        return {pattern::Variable::from_extents(0, list), false, left_out};
    }
    default: {
        Extent const one[] = {{random(0, file_bytes - 60), random(1, 60)}};
        return {pattern::Variable::from_extents(0, one), true, left_out};
    }
    }
}

template <class Visit>
void each_byte(pattern::Layout const& layout, Visit const& visit)
{
    pattern::LayoutCursor cursor(layout);
    for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
        for (std::int64_t i = 0; i < run.count; ++i)
            for (std::int64_t b = 0; b < run.length; ++b)
                visit(run.offset + i * run.stride + b, run.buffer + i * run.buffer_stride + b);
}

/// What a byte of the file shall come from: a place in the data, or nothing.
constexpr std::int64_t nothing = -1;
using Origins = std::vector<std::int64_t>;

Origins model(std::vector<Request> const& requests)
{
    Origins origins(file_bytes, nothing);
    for (auto const& request : requests)
        for (auto const& layout : request.variable.layouts())
            each_byte(layout, [&](std::int64_t offset, std::int64_t buffer) {
                origins.at(static_cast<std::size_t>(offset)) =
                    request.left_out ? nothing : static_cast<std::int64_t>(request.place) + buffer;
            });
    return origins;
}

Origins outcome(Merged const& merged)
{
    Origins origins(file_bytes, nothing);
    auto const take = [&](std::int64_t offset, std::int64_t origin) {
        auto& at = origins.at(static_cast<std::size_t>(offset));
        EXPECT_EQ(at, nothing) << "byte " << offset << " comes twice";
        at = origin;
    };
    std::int64_t bytes = 0;
    for (auto const& layout : merged.layouts) {
        std::int64_t last = -1;
        each_byte(layout, [&](std::int64_t offset, std::int64_t buffer) {
            EXPECT_GT(offset, last);
            last = offset;
            ++bytes;
            take(offset, buffer);
        });
    }
    EXPECT_EQ(bytes, merged.bytes);
    return origins;
}

/// Gives the requests places in the data: one after the other, or in any order, as those of several logs have.
std::size_t lay_out(std::vector<Request>& requests, bool in_order, Random& random)
{
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!in_order) random.shuffle(order);
    std::size_t at = 0;
    for (auto const i : order) {
        requests[i].place = at;
        at += requests[i].variable.bytes();
    }
    return at;
}

void run(std::vector<Request> const& requests, std::size_t bytes)
{
    std::vector<std::byte> const data(bytes + 1);
    Merge merge(data.data());
    for (auto const& request : requests) {
        auto const* const from = data.data() + request.place;
        for (auto const& layout : request.variable.layouts())
            if (request.left_out)
                merge.leave_out(layout);
            else if (request.contiguous)
                merge.add(layout.base + layout.entries[0].offset, layout.entries[0].length, from);
            else
                merge.add(layout, from);
    }
    EXPECT_EQ(outcome(merge.finish()), model(requests));
}

TEST(StageMerge, EveryByteComesFromTheLatestRequest)
{
    for (unsigned seed = 0; seed < 3000; ++seed) {
        Random random(seed);
        std::vector<Request> requests;
        bool const plain = seed % 4 == 0;  // the common case: contiguous requests only
        for (auto left = random(1, 25); left > 0; --left) {
            auto request = random_request(random);
            if (!plain || (request.contiguous && !request.left_out)) requests.push_back(std::move(request));
        }
        auto const bytes = lay_out(requests, seed % 2 == 0, random);
        run(requests, bytes);
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST(StageMerge, RequestsThatMeetNoOtherStayWhole)
{
    std::vector<std::byte> const data(10000);
    auto const array = pattern::Variable::from_subarray(0, Subarray{{10, 10}, {0, 0}, {5, 5}, {2, 2}, 1, 1000});
    auto const other = pattern::Variable::from_subarray(0, Subarray{{10, 10}, {0, 0}, {5, 5}, {2, 2}, 1, 2000});
    auto const clash = pattern::Variable::from_subarray(0, Subarray{{10, 10}, {0, 1}, {5, 5}, {2, 2}, 1, 2000});
    Merge merge(data.data());
    merge.add(other.layouts()[0], data.data() + 100);
    merge.add(array.layouts()[0], data.data());
    merge.add(clash.layouts()[0], data.data() + 200);
    merge.add(0, 100, data.data() + 300);
    merge.add(1100, 10, data.data() + 400);
    auto const merged = merge.finish();
    ASSERT_EQ(merged.layouts.size(), 2U);
    EXPECT_EQ(merged.bytes, 3 * 25 + 110);
    EXPECT_EQ(merged.layouts[0].base, 1000);
    EXPECT_EQ(merged.layouts[0].dimensions.size(), 2U) << "the array that no other meets";
    EXPECT_TRUE(merged.layouts[1].dimensions.empty()) << "the list of all others";
    EXPECT_EQ(merged.layouts[1].entries.size(), 2U + 50U);
}

TEST(StageMerge, OfRequestsForTheVerySameBytesTheLatestStaysWhole)
{
    std::vector<std::byte> const data(4000);
    auto const view = pattern::Variable::from_subarray(0, Subarray{{1000}, {0}, {500}, {2}, 2, 0});
    Merge merge(data.data());
    for (std::size_t i = 0; i < 4; ++i) merge.add(view.layouts().front(), data.data() + 1000 * i);
    auto const merged = merge.finish();
    EXPECT_EQ(merged.bytes, 1000);
    ASSERT_EQ(merged.layouts.size(), 1U);
    EXPECT_EQ(merged.layouts.front().buffer, 3000);
    EXPECT_EQ(merged.layouts.front().entries.size(), view.layouts().front().entries.size());
}

TEST(StageMerge, NeighboursInFileAndDataBecomeOnePiece)
{
    std::vector<std::byte> const data(1000);
    Merge merge(data.data());
    for (int i = 0; i < 10; ++i) merge.add(i * 100, 100, data.data() + i * 100);
    auto const merged = merge.finish();
    ASSERT_EQ(merged.layouts.size(), 1U);
    EXPECT_EQ(merged.layouts[0].entries.size(), 1U);
    EXPECT_EQ(merged.bytes, 1000);
}

}  // namespace
