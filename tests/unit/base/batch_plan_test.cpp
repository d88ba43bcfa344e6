#include "base/batch_plan.h"

#include <gtest/gtest.h>

#include <array>

namespace motley {
namespace {

TEST(BatchPlan, CutsEachEpochFromItsStart) {
  const BatchPlan plan(40, 16);
  EXPECT_EQ(plan.range(0), (StepRange{0, 0, 16}));
  EXPECT_EQ(plan.range(2), (StepRange{0, 32, 8}));
  EXPECT_EQ(plan.range(3), (StepRange{1, 0, 16}));
  EXPECT_EQ(plan.first_step(0), 0U);
  EXPECT_EQ(plan.first_step(2), 6U);
  EXPECT_EQ(BatchPlan(32, 16).first_step(1), 2U);
  EXPECT_EQ(BatchPlan(10, 64).range(7), (StepRange{7, 0, 10})) << "a batch beyond the data set is the data set";
}

TEST(BatchPlan, AnEpochMayEndWithItsLastWholeBatch) {
  EXPECT_EQ(used_samples(40, 16, false), 40U);
  EXPECT_EQ(used_samples(40, 16, true), 32U);
  EXPECT_EQ(used_samples(32, 16, true), 32U);
  EXPECT_EQ(used_samples(10, 64, true), 10U) << "a batch beyond the data set is the data set";
  const BatchPlan plan(used_samples(40, 16, true), 16);
  EXPECT_EQ(plan.range(1), (StepRange{0, 16, 16}));
  EXPECT_EQ(plan.range(2), (StepRange{1, 0, 16}));
  EXPECT_EQ(plan.first_step(3), 6U);
}

TEST(BatchPlan, GoesOnInsideAnEpochWithAnotherBatch) {
  const std::array<BatchChange, 3> changes{{{1, 30}, {3, 10}, {9, 100}}};
  const BatchPlan plan(100, 20, changes);
  EXPECT_EQ(plan.range(0), (StepRange{0, 0, 20}));
  EXPECT_EQ(plan.range(1), (StepRange{0, 20, 30}));
  EXPECT_EQ(plan.range(2), (StepRange{0, 50, 30}));
  EXPECT_EQ(plan.range(3), (StepRange{0, 80, 10}));
  EXPECT_EQ(plan.range(4), (StepRange{0, 90, 10}));
  EXPECT_EQ(plan.range(5), (StepRange{1, 0, 10}));
  EXPECT_EQ(plan.range(8), (StepRange{1, 30, 10}));
  EXPECT_EQ(plan.range(9), (StepRange{1, 40, 60})) << "what is left of the epoch";
  EXPECT_EQ(plan.range(10), (StepRange{2, 0, 100}));
  EXPECT_EQ(plan.batch(0), 20U);
  EXPECT_EQ(plan.batch(4), 10U);
  EXPECT_EQ(plan.batch(99), 100U);
  EXPECT_EQ(plan.first_step(1), 5U);
  EXPECT_EQ(plan.first_step(2), 10U);
  EXPECT_EQ(plan.first_step(3), 11U);
}

TEST(BatchPlan, AChangeMayBeginWithAnEpoch) {
  BatchPlan plan(40, 16);
  plan.change({3, 40});
  EXPECT_EQ(plan.range(2), (StepRange{0, 32, 8}));
  EXPECT_EQ(plan.range(3), (StepRange{1, 0, 40}));
  EXPECT_EQ(plan.first_step(1), 3U);
  EXPECT_EQ(plan.first_step(2), 4U);
}

}  // namespace
}  // namespace motley
