#include "plan/background_flow.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace motley::plan::test {
namespace {

// Steps that take so long, and so much longer while something flows; each is off by as much as `noise` either way.
struct World {
  double step_s = 0.1, cost = 0.3, noise = 0.03;
  Philox random{7, 1};
  std::uint64_t flowed = 0, steps = 0, lent = 0;
  double with = 0;

  /// `waits`: somebody does, all the time.
  void make(BackgroundFlow& flow, std::uint64_t count, bool waits = false) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool lends = waits && !flow.flows() && flow.lends();
      if (lends) flow.lent(1U << 20);
      lent += lends ? 1 : 0;
      const bool flows = flow.flows() || lends;
      const double off = noise * (2 * random.uniform() - 1);
      const double took = step_s * (1 + off) * (flows ? 1 + cost : 1);
      flow.step(took, 64);
      flowed += flows ? 1 : 0;
      with += (flows ? cost : 0);
      ++steps;
    }
  }
  double slower() const { return with / static_cast<double>(steps); }
  double part() const { return static_cast<double>(flowed) / static_cast<double>(steps); }
};

BackgroundFlow wanted_flow() {
  BackgroundFlow flow;
  flow.set_training(true);
  flow.set_wanted(true);
  return flow;
}

TEST(BackgroundFlowTest, WhereNothingIsTrainedItFlows) {
  BackgroundFlow flow;
  flow.set_wanted(true);
  EXPECT_TRUE(flow.flows());
}

TEST(BackgroundFlowTest, StepsAreNotLongerThanPromised) {
  for (const double cost : {0.05, 0.3, 1.0, 3.0}) {
    BackgroundFlow flow = wanted_flow();
    World world{.cost = cost};
    world.make(flow, 8000);
    EXPECT_LE(world.slower(), 0.03) << cost;
    EXPECT_GE(world.part(), std::min(0.3, 0.01 / cost)) << cost;
  }
}

TEST(BackgroundFlowTest, WhatCostsNothingFlowsNearlyAlways) {
  BackgroundFlow flow = wanted_flow();
  World world{.cost = 0};
  world.make(flow, 500);
  world.steps = world.flowed = 0;
  world.make(flow, 1000);
  EXPECT_GE(world.part(), 0.8);
}

TEST(BackgroundFlowTest, TheFirstThingFlowsAtOnce) {
  BackgroundFlow flow;
  flow.set_training(true);
  World world;
  world.make(flow, 100);
  EXPECT_EQ(world.flowed, 0U);
  flow.set_wanted(true);
  EXPECT_TRUE(flow.flows());
}

TEST(BackgroundFlowTest, WhoComesAgainAndAgainDoesNotBeginAnew) {
  BackgroundFlow flow;
  flow.set_training(true);
  World world{.cost = 1};
  for (int i = 0; i < 300; ++i) {
    flow.set_wanted(true);
    world.make(flow, 5);
    flow.set_wanted(false);
    world.make(flow, 2);
  }
  EXPECT_LE(world.slower(), 0.03);
}

TEST(BackgroundFlowTest, LongStepsCountOneByOne) {
  BackgroundFlow flow = wanted_flow();
  World world{.step_s = 20, .cost = 0.5};
  world.make(flow, 400);
  EXPECT_LE(world.slower(), 0.03);
  EXPECT_GE(world.flowed, 8U);
}

TEST(BackgroundFlowTest, ItFollowsWhatBecomesDearer) {
  BackgroundFlow flow = wanted_flow();
  World world{.cost = 0};
  world.make(flow, 500);
  world.cost = 0.5;
  world.make(flow, 200);
  world.steps = 0;
  world.with = 0;
  world.make(flow, 1000);
  EXPECT_LE(world.slower(), 0.03);
}

TEST(BackgroundFlowTest, WhatIsLentComesAtOnceAndIsPaidBack) {
  for (const double cost : {0.1, 0.3, 1.0}) {
    BackgroundFlow flow = wanted_flow();
    World world{.cost = cost};
    world.make(flow, 1000);
    world.steps = world.lent = 0;
    world.with = 0;
    const double most = BackgroundFlow::kDebtMax / (cost * world.step_s);
    world.make(flow, 20, true);
    EXPECT_GE(static_cast<double>(world.lent), std::min(10.0, most)) << cost;
    EXPECT_LE(static_cast<double>(world.lent), most * 1.5 + 2) << cost;
    world.make(flow, 150);
    EXPECT_LE(world.slower(), 0.03) << cost;
    world.make(flow, 2000);
    EXPECT_LE(world.slower(), 0.03) << cost;
    EXPECT_GE(world.part(), std::min(0.3, 0.01 / cost)) << cost;
  }
}

TEST(BackgroundFlowTest, WhoIsAlwaysLentHasNoMoreThanOthers) {
  for (const double cost : {0.1, 0.3, 1.0}) {
    BackgroundFlow flow = wanted_flow();
    World world{.cost = cost};
    world.make(flow, 3000, true);
    EXPECT_LE(world.slower(), 0.03) << cost;
  }
}

TEST(BackgroundFlowTest, WithinALongStepSoMuchIsLent) {
  BackgroundFlow flow = wanted_flow();
  World world{.step_s = 20};
  world.make(flow, 3);
  ASSERT_FALSE(flow.flows());
  for (std::size_t sent = 0; sent < BackgroundFlow::kLentBytesMax; sent += 1U << 20) {
    EXPECT_TRUE(flow.lends());
    flow.lent(1U << 20);
  }
  EXPECT_FALSE(flow.lends());
  world.make(flow, 1);
  EXPECT_TRUE(flow.lends()) << "it cost nothing";
}

TEST(BackgroundFlowTest, AStepOfNothingSaysNothing) {
  BackgroundFlow flow = wanted_flow();
  flow.step(0, 64);
  flow.step(1, 0);
  EXPECT_TRUE(flow.flows());
}

}  // namespace
}  // namespace motley::plan::test
