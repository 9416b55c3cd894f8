// Copies of runs: in and out of rounds and messages, also where the buffer has gaps.
#include "engine/copy.hpp"

#include <gtest/gtest.h>

#include "support/layouts.hpp"

namespace tapioca::engine {
namespace {

using test::pick;

TEST(Copy, RunsGoToTheirPlacesAndComeBack)
{
    std::mt19937 random(31);
    for (int trial = 0; trial < 3000; ++trial) {
        pattern::PieceRun run;
        run.length = pick(random, 0, 2) == 0 ? pick(random, 1, 140) : std::int64_t{1} << pick(random, 0, 7);
        run.count = pick(random, 1, 6);
        run.offset = 1000 + pick(random, 0, 50);
        run.stride = run.length + pick(random, 0, 30);
        run.buffer = pick(random, 0, 50);
        run.buffer_stride = run.length + pick(random, 0, 1) * pick(random, 0, 30);
        auto const places = test::places(run);
        std::vector<std::byte> data(2000);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37 + i / 256);

        std::vector<std::byte> round(2000);
        std::vector<std::byte> expected(2000);
        std::vector<std::byte> packed(places.size() + 1);
        std::vector<std::byte> back(2000);
        std::vector<std::byte> expected_back(2000);
        for (auto const& place : places) {
            expected[static_cast<std::size_t>(place.file - 1000)] = data[static_cast<std::size_t>(place.buffer)];
            expected_back[static_cast<std::size_t>(place.buffer)] = data[static_cast<std::size_t>(place.buffer)];
        }
        copy_in(round.data(), 1000, run, data.data());
        ASSERT_EQ(round, expected);
        copy_out(round.data(), 1000, run, back.data());
        ASSERT_EQ(back, expected_back);

        ASSERT_EQ(gather(packed.data(), run, data.data()), packed.data() + places.size());
        for (std::size_t i = 0; i < places.size(); ++i)
            ASSERT_EQ(packed[i], data[static_cast<std::size_t>(places[i].buffer)]);
        ASSERT_EQ(packed.back(), std::byte{0});
        std::fill(back.begin(), back.end(), std::byte{0});
        ASSERT_EQ(scatter(packed.data(), run, back.data()), packed.data() + places.size());
        ASSERT_EQ(back, expected_back);
    }
}

}  // namespace
}  // namespace tapioca::engine
