// Workloads: the data of all ranks covers the file, each byte once, and is the same for benchmark and plan.
#include "workloads/workload.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "pattern/summary.hpp"
#include "workloads/hacc.hpp"

namespace workloads {
namespace {

/// How often each byte of the first `size` is moved.
std::vector<int> coverage(Workload const& workload, int ranks, std::size_t size)
{
    std::vector<int> covered(size, 0);
    for (int rank = 0; rank < ranks; ++rank) {
        auto const part = workload.part(rank);
        auto const variables = part.extents.empty() ? part.variables.size() : 1;
        for (std::size_t var = 0; var < variables; ++var)
            part.for_each_piece(var, [&](std::int64_t offset, std::int64_t length) {
                for (auto at = offset; at < offset + length; ++at) ++covered.at(static_cast<std::size_t>(at));
            });
    }
    return covered;
}

std::int64_t bytes(Workload const& workload, int ranks)
{
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank)
        for (auto const& variable : workload.part(rank).variables) sum += variable.bytes();
    return sum;
}

TEST(Workloads, MoveEveryByteOfAStepOnce)
{
    for (auto const* const text : {"hacc:100,aos", "hacc:100,soa", "interleaved:64,1K", "interleaved:1K,1K",
                                   "array1d:1K", "array1d:1K,random", "array1d:1K,normal", "sizes:10,0,300"}) {
        auto const workload = from_text(text, 3);
        ASSERT_TRUE(workload) << workload.error().text;
        auto const all = coverage(*workload, 3, static_cast<std::size_t>(bytes(*workload, 3)));
        EXPECT_EQ(std::count(all.begin(), all.end(), 1), static_cast<std::ptrdiff_t>(all.size())) << text;
    }
}

TEST(Workloads, HaccIsTheOneOfTheLibrary)
{
    using tapioca::hacc::Layout;
    for (auto const layout : {Layout::aos, Layout::soa}) {
        auto const workload = make_hacc(5, 321, layout == Layout::aos ? "aos" : "soa");
        for (int rank = 0; rank < 5; ++rank) {
            tapioca::pattern::Summary const here =
                tapioca::pattern::summarise(tapioca::pattern::variables_of(workload.part(rank).pattern()));
            auto const there = tapioca::hacc::pattern(layout, 321, rank * 321, 5 * 321);
            tapioca::pattern::Summary const expected =
                tapioca::pattern::summarise(tapioca::pattern::variables_of(there));
            EXPECT_EQ(here.begin, expected.begin);
            EXPECT_EQ(here.end, expected.end);
            EXPECT_EQ(here.bytes, expected.bytes);
            EXPECT_EQ(here.pieces, expected.pieces);
        }
    }
}

TEST(Workloads, SizesOfHaccDifferAsTheyAreTold)
{
    Sizes sizes;
    sizes.heavy = "last";
    auto const heavy = make_hacc(4, 1000, "aos", sizes);
    auto const of = [&](int rank) { return heavy.part(rank).variables[8].length / 2; };
    EXPECT_EQ(of(0) + of(1), 1000);
    EXPECT_EQ(of(2) + of(3), 3000);
    EXPECT_EQ(heavy.label, "hacc aos, 1000 particles a rank, 0.75 of the data on the last half of the ranks");
    sizes = {};
    sizes.distribution = "normal";
    auto const normal = make_hacc(64, 1000, "soa", sizes);
    EXPECT_EQ(bytes(normal, 64) % 38, 0);
    EXPECT_NE(normal.part(0).variables[0].length, normal.part(1).variables[0].length);
}

TEST(Workloads, SayWhatIsWrongWithTheirText)
{
    auto const refusal = [](std::string const& text) { return from_text(text, 3).error().text; };
    EXPECT_EQ(refusal("hack:5"), "hack:5: did you mean hacc?");
    EXPECT_EQ(refusal("hacc"), "hacc: expected hacc:PARTICLES,aos or hacc:PARTICLES,soa");
    EXPECT_EQ(refusal("strided:4K"), "strided:4K: did you mean sizes?") << "it is not for plans";
    EXPECT_EQ(refusal("sizes:1,2"), "sizes:1,2: expected sizes:BYTES,BYTES,... for each of the 3 ranks");
}

}  // namespace
}  // namespace workloads
