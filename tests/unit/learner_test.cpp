// Learner: what a repeated step tries, keeps and gives up, given the times.
#include "plan/learner.hpp"

#include <map>

#include <gtest/gtest.h>

namespace tapioca::plan {
namespace {

using Seconds = std::map<std::string, double>;

/// Runs the learner's ways with the seconds that each takes. What the runs took together.
double run(Learner& learner, Seconds const& truth, int runs)
{
    double total = 0;
    for (int i = 0; i < runs; ++i) {
        auto const seconds = truth.at(learner.way().name());
        total += seconds;
        learner.ran(learner.listens() ? std::optional(seconds) : std::nullopt);
    }
    return total;
}

std::vector<Alternative> const others = {{0, 7.0}, {2, 7.5}, {16, 9.0}};

TEST(Learner, KeepsWhatTakesAsLongAsPredictedIfNothingElseComesNear)
{
    Learner learner({1, 5.5}, others);
    Seconds const truth = {{"1 aggregator", 6.0}, {"direct", 1.0}, {"2 aggregators", 1.0}, {"16 aggregators", 1.0}};
    EXPECT_DOUBLE_EQ(run(learner, truth, 100), 600);  // nothing else was tried
    EXPECT_TRUE(learner.settled());
    EXPECT_EQ(learner.kept().verdict, "as predicted");
}

TEST(Learner, TriesWhatIsPredictedToComeNearThoughThePredictionWasRight)
{
    Learner learner({1, 6.3}, {{0, 7.0}, {2, 7.5}, {16, 9.0}, {1, 6.3, 1 << 20}});
    Seconds const truth = {{"1 aggregator", 6.5},
                           {"direct", 7.1},
                           {"2 aggregators", 6.4},
                           {"16 aggregators", 1.0},
                           {"1 aggregator, 1024 KiB", 5.5}};
    EXPECT_LE(run(learner, truth, 20), 20 * 6.5 + 6.5);
    EXPECT_EQ(learner.way().name(), "1 aggregator, 1024 KiB");
    EXPECT_TRUE(learner.settled());
    EXPECT_EQ(learner.trials()[3].runs, 0);  // 16 aggregators
}

TEST(Learner, WhatWasSlowForAWhileIsNotReplaced)
{
    Learner learner({1, 6.3}, {{0, 7.0}});
    for (int i = 0; i < 3; ++i) learner.ran(7.5);  // others use the machine
    ASSERT_EQ(learner.way().name(), "direct");
    for (int i = 0; i < 3; ++i) learner.ran(7.0);
    ASSERT_EQ(learner.way().name(), "1 aggregator");
    EXPECT_FALSE(learner.settled());
    for (int i = 0; i < 2; ++i) learner.ran(6.3);
    EXPECT_TRUE(learner.settled());
    EXPECT_EQ(learner.way().name(), "1 aggregator");
    EXPECT_EQ(learner.trials()[1].verdict, "not faster");
    EXPECT_EQ(learner.trials()[0].runs, 5);
    EXPECT_EQ(learner.trials()[1].runs, 3);
}

TEST(Learner, StepsOfMicrosecondsAreNotWorthPlans)
{
    Learner learner({1, 2e-6}, {{0, 3e-6}, {Alternative::left, 0}});
    Seconds const truth = {{"1 aggregator", 5e-6}, {"direct", 4e-6}, {"left to the MPI library", 1e-6}};
    run(learner, truth, 3);
    EXPECT_TRUE(learner.settled());
    EXPECT_EQ(learner.way().name(), "1 aggregator");
}

TEST(Learner, TriesOthersWhereThePredictionWasOffAndKeepsTheFastest)
{
    Learner learner({1, 6.3}, others);  // the figures of a sparse write on 16 cores
    Seconds const truth = {{"1 aggregator", 10.8}, {"direct", 7.2}, {"2 aggregators", 9.0}, {"16 aggregators", 7.3}};
    run(learner, truth, 24);
    EXPECT_EQ(learner.way().name(), "direct");
    run(learner, truth, 300);
    EXPECT_TRUE(learner.settled());
    EXPECT_EQ(learner.way().name(), "direct");
    EXPECT_EQ(learner.trials().front().verdict, "slower than direct");
}

TEST(Learner, TryingCostsTwoRunsAndATwentiethOfTheTimeAtMost)
{
    // Every other way is as slow as it can be without being given up at once.
    Learner learner({1, 1.0}, {{0, 1.1}, {2, 1.2}, {4, 1.3}, {8, 1.4}, {16, 1.5}});
    Seconds const truth = {{"1 aggregator", 2.0},  {"direct", 5.9},        {"2 aggregators", 5.9},
                           {"4 aggregators", 5.9}, {"8 aggregators", 5.9}, {"16 aggregators", 5.9}};
    for (int runs = 1; runs <= 400; ++runs) {
        Learner fresh({1, 1.0}, {{0, 1.1}, {2, 1.2}, {4, 1.3}, {8, 1.4}, {16, 1.5}});
        auto const took = run(fresh, truth, runs);
        // Two trial runs may be under way when the budget is passed.
        EXPECT_LE(took, 2.0 * runs * 1.05 + 2 * 2.0 + 2 * 3.9) << runs << " runs";
    }
    run(learner, truth, 1000);
    EXPECT_EQ(learner.way().name(), "1 aggregator");
    EXPECT_TRUE(learner.settled());
}

TEST(Learner, AWayThatIsHopelessRunsOnce)
{
    Learner learner({1, 1.0}, {{0, 1.1}});
    Seconds const truth = {{"1 aggregator", 2.0}, {"direct", 50.0}};
    EXPECT_DOUBLE_EQ(run(learner, truth, 50), 49 * 2.0 + 50.0);
    EXPECT_EQ(learner.trials()[1].runs, 1);
    EXPECT_EQ(learner.trials()[1].verdict, "not faster");
}

TEST(Learner, GoesNeitherBackNorForthWithoutANewReason)
{
    Learner learner({1, 1.0}, {{0, 1.1}, {2, 1.2}});
    int changes = 0;
    auto before = learner.way().name();
    for (int i = 0; i < 500; ++i) {
        // Whatever is tried is a little better than what was kept, in turns.
        learner.ran(learner.listens() ? std::optional(2.0 - 0.001 * i) : std::nullopt);
        if (learner.way().name() != before) ++changes;
        before = learner.way().name();
    }
    EXPECT_LE(changes, 4);  // to each of the others, and back
    EXPECT_TRUE(learner.settled());
}

TEST(Learner, WhatIsLeftToTheMpiLibraryIsTriedOnceThatCostsLittle)
{
    Learner learner({1, 1.0}, {{Alternative::left, 0}});
    Seconds const truth = {{"1 aggregator", 1.0}, {"left to the MPI library", 0.5}};
    run(learner, truth, 30);
    EXPECT_EQ(learner.way().name(), "1 aggregator");
    run(learner, truth, 30);
    EXPECT_EQ(learner.way().name(), "left to the MPI library");
}

TEST(Learner, GoesOnWithoutAWayThatIsRefused)
{
    Learner learner({1, 1.0}, {{0, 1.1}, {2, 1.2}});
    Seconds const truth = {{"1 aggregator", 3.0}, {"2 aggregators", 1.0}};
    run(learner, truth, 3);
    ASSERT_EQ(learner.way().name(), "direct");
    learner.refused("no memory");
    EXPECT_EQ(learner.way().name(), "2 aggregators");
    run(learner, truth, 10);
    EXPECT_EQ(learner.way().name(), "2 aggregators");
    EXPECT_EQ(learner.trials()[1].verdict, "no memory");
}

TEST(Learner, BeginsWithWhatAnEarlierJobHasFound)
{
    Learner learner({1, 1.0}, {{0, 1.1}});
    learner.prefer({0, 0.5});
    EXPECT_EQ(learner.way().name(), "direct");
    EXPECT_DOUBLE_EQ(run(learner, {{"direct", 0.9}}, 10), 9.0);
    EXPECT_TRUE(learner.settled());
    EXPECT_EQ(learner.kept().verdict, "the fastest in an earlier job");
    Learner other({1, 1.0}, {{0, 1.1}});
    other.prefer({64, 0.5});  // which this job cannot have
    EXPECT_EQ(other.way().name(), "1 aggregator");
    EXPECT_FALSE(other.settled());
}

TEST(Learner, BeginsWithTheBuffersThatAnEarlierJobHasFound)
{
    Learner learner({1, 1.0}, {{0, 1.1}});
    learner.prefer({1, 0.5, 1 << 20});
    EXPECT_EQ(learner.way().name(), "1 aggregator, 1024 KiB");
    run(learner, {{"1 aggregator, 1024 KiB", 0.6}}, 5);
    EXPECT_TRUE(learner.settled());
}

TEST(Learner, LearnsAnewWhereAnEarlierJobsWayHasBecomeSlow)
{
    Learner learner({1, 1.0}, {{0, 1.1}, {2, 1.4}});
    learner.prefer({0, 0.5});
    Seconds const truth = {{"direct", 3.0}, {"1 aggregator", 1.1}, {"2 aggregators", 0.1}};
    run(learner, truth, 20);
    EXPECT_TRUE(learner.settled());
    EXPECT_EQ(learner.way().name(), "1 aggregator");
    EXPECT_EQ(learner.kept().verdict, "the fastest of those tried");
    EXPECT_EQ(learner.trials()[1].verdict, "slower than in an earlier job");
}

TEST(Learner, TakesTurnsWhereItAlwaysTries)
{
    Learner learner({1, 1.0}, {{0, 1.1}, {2, 1.2}}, Learning::always);
    std::string names;
    for (int i = 0; i < 5; ++i) {
        names += learner.way().name() + " ";
        if (i == 2) learner.refused("no memory");
        learner.ran(std::nullopt);
    }
    EXPECT_EQ(names, "1 aggregator direct 2 aggregators direct 1 aggregator ");
    EXPECT_FALSE(learner.listens());
}

TEST(Learner, LearnsNothingWhereItIsOff)
{
    Learner learner({1, 1.0}, {{0, 1.1}}, Learning::off);
    EXPECT_TRUE(learner.settled());
    EXPECT_FALSE(learner.listens());
}

TEST(Learner, ThereIsNothingToLearnWithoutAChoice)
{
    Learner learner({1, 1.0}, {{1, 1.0}});
    EXPECT_FALSE(learner.active());
    EXPECT_TRUE(learner.settled());
}

}  // namespace
}  // namespace tapioca::plan
