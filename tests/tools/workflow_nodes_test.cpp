// Whose data the ranks of `tapioca bench workflow` read.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "workflow_nodes.hpp"

namespace {

std::vector<int> readers(std::vector<int> const& leaders)
{
    std::vector<int> read;
    for (int rank = 0; rank < static_cast<int>(leaders.size()); ++rank)
        read.push_back(bench::whose_data(leaders, rank));
    return read;
}

TEST(WorkflowNodes, TheNextNodeReads)
{
    EXPECT_EQ(readers({0, 0, 2, 2, 4, 4}), (std::vector{2, 3, 4, 5, 0, 1}));
    EXPECT_EQ(readers({0, 1, 0, 1}), (std::vector{1, 0, 3, 2})) << "ranks that are dealt to the nodes in turn";
    EXPECT_EQ(bench::count_nodes({0, 1, 0, 1}), 2);
}

TEST(WorkflowNodes, OnOneNodeTheNextRankReads)
{
    EXPECT_EQ(readers({0, 0, 0}), (std::vector{1, 2, 0}));
    EXPECT_EQ(readers({0}), (std::vector{0}));
}

TEST(WorkflowNodes, EveryRankIsReadOnceAndOnAnotherNode)
{
    std::mt19937 random(1);
    for (int i = 0; i < 1000; ++i) {
        auto const nodes = 1 + static_cast<int>(random() % 6);
        std::vector<int> first(static_cast<std::size_t>(nodes), -1);
        std::vector<int> leaders;
        for (int rank = 0; rank < 1 + static_cast<int>(random() % 20); ++rank) {
            auto& leader = first[random() % first.size()];
            if (leader < 0) leader = rank;
            leaders.push_back(leader);
        }
        auto const read = readers(leaders);
        auto sorted = read;
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t rank = 0; rank < sorted.size(); ++rank) EXPECT_EQ(sorted[rank], static_cast<int>(rank));
        std::ptrdiff_t largest = 0;
        for (auto const leader : leaders)
            largest = std::max(largest, std::count(leaders.begin(), leaders.end(), leader));
        if (bench::count_nodes(leaders) < 2 || 2 * largest > std::ssize(leaders)) continue;  // not possible for all
        for (std::size_t rank = 0; rank < read.size(); ++rank)
            EXPECT_NE(leaders[rank], leaders[static_cast<std::size_t>(read[rank])]);
    }
}

}  // namespace
