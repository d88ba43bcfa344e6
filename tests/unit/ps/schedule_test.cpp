#include "ps/schedule.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

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

TEST(ScheduleTable, ReplacesTheNumbersOfTheGroupsRowByRow) {
  auto table = std::make_shared<ScheduleTable>();
  table->steps_per_row = 3;
  table->groups = 2;
  table->rates = {{0.1, 0.9, 0, 0}, {0.2, 0.8, 0, 0}, {0.01, 0.7, 0.5, 0.6}, {0.02, 0.6, 0, 0}};
  const ScheduleSpec spec{.kind = ScheduleKind::table, .table = table};
  ASSERT_TRUE(check(spec));
  const GroupSpec base{.lr = 5, .weight_decay = 0.3};
  EXPECT_DOUBLE_EQ(group_at(spec, 0, base, 0).lr, 0.1);
  EXPECT_DOUBLE_EQ(group_at(spec, 1, base, 2).lr, 0.2);
  EXPECT_DOUBLE_EQ(group_at(spec, 1, base, 3).lr, 0.02);
  const GroupSpec held = group_at(spec, 0, base, 1'000'000);
  EXPECT_EQ(held, (GroupSpec{.lr = 0.01, .momentum = 0.7, .weight_decay = 0.3, .beta1 = 0.5, .beta2 = 0.6}));
}

TEST(ScheduleTable, MustBeWhole) {
  auto table = std::make_shared<ScheduleTable>();
  const ScheduleSpec spec{.kind = ScheduleKind::table, .table = table};
  EXPECT_FALSE(check(ScheduleSpec{.kind = ScheduleKind::table}));
  EXPECT_FALSE(check(spec));
  table->groups = 2;
  table->rates.resize(3);
  EXPECT_FALSE(check(spec));
  table->rates.resize(4);
  EXPECT_TRUE(check(spec));
}

}  // namespace
}  // namespace motley::ps
