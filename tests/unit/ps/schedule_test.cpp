#include "ps/schedule.h"

#include <gtest/gtest.h>

namespace motley::ps {
namespace {

TEST(Schedule, WarmUpIsLinearFromOneStepOn) {
  const ScheduleSpec spec{.warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 2), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 3), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 4), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 1'000'000), 1);
}

TEST(Schedule, StepsCountFromTheEndOfTheWarmUp) {
  const ScheduleSpec spec{.kind = ScheduleKind::step, .warmup_steps = 2, .step_size = 3, .gamma = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 4), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 5), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 8), 0.25);
}

TEST(Schedule, CosineStaysAtItsMinimum) {
  const ScheduleSpec spec{.kind = ScheduleKind::cosine, .total_steps = 10, .min_factor = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 0), 1);
  EXPECT_NEAR(learning_rate_factor(spec, 5), 0.6, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 10), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_factor(spec, 11), 0.2);
}

}  // namespace
}  // namespace motley::ps
