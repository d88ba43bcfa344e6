#include "plan/clipping_cost.h"

#include <gtest/gtest.h>

namespace motley::plan {
namespace {

TEST(ClippingCost, IsToldOnceWhereItIsMoreThanThreePerCentOfTheSteps) {
  struct Case {
    double update_seconds;
    std::size_t chunks;
    bool told;
  };
  for (const auto& [update, chunks, told] : {Case{0.05, 100, true}, Case{0.031, 100, true}, Case{0.03, 100, false},
                                             Case{0, 100, false}, Case{0.05, 2, false}, Case{0.9, 1, false}}) {
    ClippingCost cost(chunks);
    int times = 0;
    for (int i = 0; i < 200; ++i) {
      const auto mean = cost.step(1, update);
      if (!mean) continue;
      ++times;
      EXPECT_DOUBLE_EQ(mean->step_seconds, 1);
      EXPECT_NEAR(mean->waited_seconds, update * (1 - 1 / static_cast<double>(chunks)), 1e-12);
    }
    EXPECT_EQ(times, told ? 1 : 0) << update << " s of " << chunks << " chunks";
  }
}

TEST(ClippingCost, ColdStepsAndSingleOnesSayNothing) {
  ClippingCost cost(100);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(cost.step(1, 0.9));
  for (int i = 0; i < 160; ++i) EXPECT_FALSE(cost.step(1, i % 16 == 0 ? 0.3 : 0.01));
}

TEST(ClippingCost, IsToldWhenItBecomesSo) {
  ClippingCost cost(100);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(cost.step(1, 0.01));
  bool told = false;
  for (int i = 0; i < 32; ++i) told = cost.step(1, 0.1).has_value() || told;
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace motley::plan
