// When what is known of workers has settled, and when people are told.

#include "plan/settling.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "plan/plan_news.h"
#include "plan/step_overhead.h"

namespace motley::plan {
namespace {

constexpr std::array<std::uint64_t, 2> kSharing{1, 2};

TEST(Settling, TakesEightPassesOrTwoLongOnesAndIsToldEachTimeAndAfterSeconds) {
  struct Case {
    double pass;
    std::vector<int> told;
  };
  for (const auto& [pass, told] : {Case{0.2, {1, 8, 25}}, Case{1, {1, 5, 8}}, Case{20, {1, 2, 8}}}) {
    Settling settling;
    PlanNews news;
    EXPECT_FALSE(news.news(settling.stage())) << "nobody has a share";
    news.shared(kSharing);
    std::vector<int> passes;
    for (int i = 1; i <= 40; ++i) {
      settling.closed(pass);
      news.shared(kSharing);
      if (!news.news(settling.stage())) continue;
      news.told(settling.stage());
      passes.push_back(i);
    }
    EXPECT_EQ(passes, told) << pass;
    settling.begin();
    EXPECT_FALSE(settling.settled());
    EXPECT_EQ(settling.passes(), 0U);
  }
}

TEST(PlanNews, OthersWithAShareAreNews) {
  PlanNews news;
  news.shared(kSharing);
  news.told(Settling::Stage::settled);
  news.shared(kSharing);
  EXPECT_FALSE(news.news(Settling::Stage::unsettled));
  news.shared(std::array<std::uint64_t, 2>{1, 3});
  EXPECT_TRUE(news.news(Settling::Stage::unsettled));
  news.told(Settling::Stage::unsettled);
  news.outdated();
  EXPECT_TRUE(news.news(Settling::Stage::unsettled));
}

TEST(PlanNews, WhatAWorkerDoesAloneIsToldEachTimeThatItIsLeftToIt) {
  struct Case {
    double step;
    std::vector<int> told;
  };
  PlanNews news;
  for (const auto& [step, told] : {Case{0.3, {17}}, Case{0.3, {17}}, Case{0.03, {30, 167}}, Case{4, {3}}}) {
    news.shared(kSharing);
    news.told(Settling::Stage::settled);
    std::vector<int> steps;
    for (int i = 1; i <= 300; ++i) {
      news.alone(step);
      if (!news.news(Settling::Stage::unsettled)) continue;
      news.told(Settling::Stage::unsettled);
      steps.push_back(i);
    }
    EXPECT_EQ(steps, told) << step;
  }
}

TEST(StepOverhead, IsWhatPassesTakeBeyondThePlan) {
  struct Case {
    const char* what;
    double expected;
    std::vector<double> passes;
    std::uint32_t since;
    double plan_of_one;
  };
  for (const Case& each : {
           Case{"unknown", 0, {1.5}, 9, 1},
           Case{"the first took longer because it was the first", 1, {1.2}, 1, 1.05},
           Case{"so did the second", 1, {1.9, 1.2}, 2, 1.1},
           Case{"later ones count a fifth", 1, {1.2, 1.2, 1.2, 1.2, 1.7}, 5, 1.3},
           Case{"a loss is no measurement", 1, {60, 60}, 9, 2},
           Case{"others helped to end it, which they will not do to every plan", 1, {0.1}, 9, 0.75},
       }) {
    StepOverhead step_overhead;
    std::uint32_t passes = 0;
    for (const double took : each.passes) {
      step_overhead.expect(each.expected);
      step_overhead.closed(took, ++passes);
    }
    EXPECT_EQ(step_overhead.seconds().has_value(), each.expected > 0) << each.what;
    EXPECT_NEAR(step_overhead.added_to(1, each.since), each.plan_of_one, 1e-9) << each.what;
  }
}

}  // namespace
}  // namespace motley::plan
