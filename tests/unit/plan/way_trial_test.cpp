#include "plan/way_trial.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <numbers>

#include "base/philox.h"

namespace motley::plan {
namespace {

constexpr std::array kAll{Way::star, Way::weights, Way::both};

/// Steps, of which each takes so long, by way, and varies.
class Steps {
 public:
  Steps(std::array<double, 3> seconds, double noise, std::uint64_t seed)
      : seconds_(seconds), noise_(noise), random_(seed) {}
  double of(Way way) {
    const double normal =
        std::sqrt(-2 * std::log(1 - random_.uniform())) * std::cos(2 * std::numbers::pi * random_.uniform());
    return seconds_[static_cast<std::size_t>(way)] * (1 + noise_ * normal);
  }
  /// What the steps took.
  double go_on(WayTrial& trial, int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      const Way way = trial.way();
      const double took = of(way);
      trial.closed(way, took, true);
      sum += took;
    }
    return sum;
  }

 private:
  std::array<double, 3> seconds_;
  double noise_;
  Philox random_;
};

WayTrial trial_of_all() { return WayTrial({kAll.begin(), kAll.end()}); }

TEST(WayTrial, BeginsWithTheChainBothWays) {
  WayTrial trial = trial_of_all();
  EXPECT_EQ(trial.way(), Way::both);
  EXPECT_TRUE(trial.trying());
}

TEST(WayTrial, FindsTheFastest) {
  for (const Way fastest : kAll) {
    std::array<double, 3> seconds{1, 1, 1};
    seconds[static_cast<std::size_t>(fastest)] = 0.9;
    int right = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      WayTrial trial = trial_of_all();
      Steps(seconds, 0.05, seed).go_on(trial, 300);
      EXPECT_FALSE(trial.trying());
      right += trial.way() == fastest ? 1 : 0;
    }
    EXPECT_GE(right, 95) << static_cast<int>(fastest);
  }
}

TEST(WayTrial, WhereStepsDoNotTellTheStarIsKept) {
  int star = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    WayTrial trial = trial_of_all();
    Steps({1, 1, 1}, 0.03, seed).go_on(trial, 300);
    star += trial.way() == Way::star ? 1 : 0;
  }
  EXPECT_GE(star, 80);
}

TEST(WayTrial, WhatIsClearlySlowerIsLeftWithinAFewSteps) {
  WayTrial trial = trial_of_all();
  Steps run({3, 2, 1}, 0.02, 1);
  const double took = run.go_on(trial, 60);
  EXPECT_EQ(trial.way(), Way::both);
  EXPECT_FALSE(trial.trying());
  EXPECT_LT(took, 60 + 5 * 1.1 + 5 * 2.2) << "five steps of each other way";
  ASSERT_TRUE(trial.gained());
  EXPECT_NEAR(*trial.gained(), 1, 0.1);
  EXPECT_THAT(trial.why(), testing::StartsWith("weights and gradients go from worker to worker: any other way a step"));
}

TEST(WayTrial, CostsAHundredthOfALongRunAtTheMost) {
  for (const std::array<double, 3> seconds :
       {std::array{1.0, 1.1, 1.2}, {1.0, 1.5, 2.0}, {1.2, 1.1, 1.0}, {3.0, 2.0, 1.0}}) {
    double took = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      WayTrial trial = trial_of_all();
      took += Steps(seconds, 0.05, seed).go_on(trial, 3000);
    }
    EXPECT_LT(took / 20, 3000 * 1.01);
  }
}

TEST(WayTrial, AWayThatCannotBeHadIsLeft) {
  WayTrial trial = trial_of_all();
  for (int i = 0; i < 200 && trial.trying(); ++i) trial.closed(Way::star, 1, true);
  EXPECT_EQ(trial.way(), Way::star);
  EXPECT_FALSE(trial.trying());
  EXPECT_FALSE(trial.gained()) << "nothing was compared";
}

TEST(WayTrial, WhoComesAndGoesDoesNotKeepItFromEnding) {
  WayTrial trial = trial_of_all();
  std::uint32_t steps = 0;
  for (; trial.trying() && steps < 1000; ++steps) {
    if (steps % 5 == 0) trial.others();
    trial.closed(trial.way(), 1, true);
  }
  EXPECT_LE(steps, WayTrial::kStepsMax + 1);
  EXPECT_EQ(trial.way(), Way::both) << "as it began";
}

TEST(WayTrial, StepsWithOthersAreNotComparedWithThoseBefore) {
  for (const double then : {0.5, 2.0}) {
    WayTrial trial = trial_of_all();
    Steps before({1.1, 1.1, 1}, 0, 5), after({1.1 * then, 1.1 * then, then}, 0, 5);
    before.go_on(trial, WayTrial::kCold + WayTrial::kBlock + 1);
    ASSERT_TRUE(trial.against_best());
    trial.others();
    for (int i = 0; i < 400 && trial.trying(); ++i) after.go_on(trial, 1);
    EXPECT_EQ(trial.way(), Way::both) << then;
    EXPECT_NEAR(trial.gained().value_or(0), 0.1, 0.02) << then;
  }
}

TEST(WayTrial, StepsThatDoNotCountAreNotCompared) {
  WayTrial trial = trial_of_all();
  Steps run({2, 2, 1}, 0.02, 5);
  for (int i = 0; i < 400 && trial.trying(); ++i) {
    const bool disturbed = i % 3 == 0;
    const Way way = trial.way();
    trial.closed(way, disturbed ? 50 : run.of(way), !disturbed);
  }
  EXPECT_EQ(trial.way(), Way::both);
}

TEST(WayTrial, OthersAreTriedForAgainMoreAndMoreRarely) {
  WayTrial trial = trial_of_all();
  Steps slow({1, 2, 3}, 0.02, 7), fast({3, 2, 1}, 0.02, 8);
  slow.go_on(trial, 100);
  ASSERT_EQ(trial.way(), Way::star);
  fast.go_on(trial, 1000);
  EXPECT_EQ(trial.way(), Way::star) << "nobody came";
  trial.others();
  fast.go_on(trial, 100);
  EXPECT_EQ(trial.way(), Way::both);
  EXPECT_FALSE(trial.trying());
  trial.others();
  slow.go_on(trial, 20);
  EXPECT_FALSE(trial.trying()) << "it was tried just before";
  slow.go_on(trial, 300);
  EXPECT_EQ(trial.way(), Way::star);
}

TEST(WayTrial, WithOneWayThereIsNothingToTry) {
  WayTrial trial({Way::star});
  EXPECT_FALSE(trial.trying());
  trial.others();
  Steps({1, 1, 1}, 0.05, 1).go_on(trial, 500);
  EXPECT_EQ(trial.way(), Way::star);
}

}  // namespace
}  // namespace motley::plan
