// Workloads: the data of all ranks covers the file, each byte once, and is the same for benchmark and plan.
#include "workloads/workload.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

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

TEST(Workloads, HaccPutsRanksTogetherInAosAndVariablesInSoa)
{
    auto const aos = hacc_part("aos", 10, 20, 100).variables;
    ASSERT_EQ(aos.size(), 9U);
    EXPECT_EQ(aos[0].offset, 20 * 38);
    EXPECT_EQ(aos[1].offset, 20 * 38 + 10 * 4);
    EXPECT_EQ(aos[8].offset, 20 * 38 + 10 * 36);
    auto const soa = hacc_part("soa", 10, 20, 100).variables;
    ASSERT_EQ(soa.size(), 9U);
    EXPECT_EQ(soa[0].offset, 20 * 4);
    EXPECT_EQ(soa[1].offset, 100 * 4 + 20 * 4);
    EXPECT_EQ(soa[8].offset, 100 * 36 + 20 * 2);
    for (auto const& variables : {aos, soa}) {
        EXPECT_EQ(variables[6].bytes(), 10 * 4);
        EXPECT_EQ(variables[7].bytes(), 10 * 8);
        EXPECT_EQ(variables[8].bytes(), 10 * 2);
    }
}

TEST(Workloads, HaccMovesEveryByteOnceWhateverTheRanksHave)
{
    std::vector<std::int64_t> const particles = {5, 0, 17, 1, 9};
    for (auto const* const layout : {"aos", "soa"}) {
        Workload workload;
        workload.part = [&](int rank) {
            auto const mine = particles.begin() + rank;
            return hacc_part(layout, *mine, std::accumulate(particles.begin(), mine, std::int64_t{0}), 32);
        };
        auto const all = coverage(workload, 5, 32 * 38);
        EXPECT_EQ(std::count(all.begin(), all.end(), 1), 32 * 38) << layout;
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
