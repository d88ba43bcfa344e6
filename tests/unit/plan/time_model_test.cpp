#include "plan/time_model.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>

namespace motley::plan {
namespace {

// A factor from 0.98 to 1.02, the same in every run.
double noise() {
  static std::mt19937 bits(7);
  return 1 + (static_cast<double>(bits() % 1001) / 1000 - 0.5) * 0.04;
}

TEST(TimeModel, IsEmptyBeforeTheFirstRecord) {
  TimeModel model;
  EXPECT_FALSE(model.affine());
  model.record(0, 1);
  model.record(10, 0);
  model.record(10, -1);
  model.record(10, std::numeric_limits<double>::quiet_NaN());
  model.record(10, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(model.affine());
}

TEST(TimeModel, TakesTheFirstRecordForProportional) {
  TimeModel model;
  model.record(200, 2);
  EXPECT_EQ(model.affine(), (Affine{0, 0.01}));
}

TEST(TimeModel, FindsBothPartsWhereSharesVary) {
  TimeModel model;
  constexpr std::array<std::uint64_t, 5> kShares{32, 128, 96, 64, 160};
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t b = kShares[static_cast<std::size_t>(i) % kShares.size()];
    model.record(b, (0.02 + 0.001 * static_cast<double>(b)) * noise());
  }
  EXPECT_NEAR(model.affine()->fixed, 0.02, 0.002);
  EXPECT_NEAR(model.affine()->per_sample, 0.001, 0.00003);
  EXPECT_LT(model.deviation(), 0.035) << "from 0.05 at first";
}

TEST(TimeModel, KeepsTheRatioWhileSharesStandStill) {
  TimeModel model;
  for (int i = 0; i < 10; ++i) {
    model.record(32, 0.052);
    model.record(64, 0.084);
  }
  for (int i = 0; i < 500; ++i) model.record(64, 0.084 * 1.05 * noise());
  EXPECT_NEAR(model.affine()->seconds(64), 0.084 * 1.05, 0.002);
  EXPECT_NEAR(model.affine()->fixed / model.affine()->per_sample, 20, 8);  // it drifts a little with the first records
}

TEST(TimeModel, ColdRecordsSayLittleSoonAfter) {
  TimeModel model;
  for (const double cold : {1.5, 1.3, 1.2}) model.record(100, cold);
  for (int i = 0; i < 8; ++i) model.record(100, noise());
  EXPECT_NEAR(model.affine()->seconds(100), 1, 0.03);
}

TEST(TimeModel, AHiccupMovesLittle) {
  TimeModel model;
  for (int i = 0; i < 20; ++i) model.record(100, noise());
  model.record(100, 60);
  EXPECT_NEAR(model.affine()->seconds(100), 1, 0.02);
  model.record(100, 1);
  model.record(100, 60);
  EXPECT_NEAR(model.affine()->seconds(100), 1, 0.03);
}

TEST(TimeModel, AChangeIsBelievedAtItsSecondRecord) {
  TimeModel model;
  for (int i = 0; i < 50; ++i) {
    model.record(50, 0.6 * noise());
    model.record(100, 1.1 * noise());
  }
  model.record(100, 2.2);
  model.record(100, 2.2);
  EXPECT_NEAR(model.affine()->seconds(100), 2.2, 0.1);
  EXPECT_NEAR(model.affine()->seconds(50), 1.2, 0.1);  // the ratio of the parts stays
  for (int i = 0; i < 2; ++i) model.record(50, 0.6);
  EXPECT_NEAR(model.affine()->seconds(50), 0.6, 0.05);
}

TEST(TimeModel, ShortRecordsMakeItFasterStepByStep) {
  TimeModel model;
  for (int i = 0; i < 50; ++i) model.record(20, 0.08 * noise());
  for (int i = 0; i < 2; ++i) model.record(20, 0.02);
  EXPECT_NEAR(model.affine()->seconds(20), 0.08 / 1.3, 0.004);
  for (int i = 0; i < 20; ++i) model.record(20, 0.02);
  EXPECT_NEAR(model.affine()->seconds(20), 0.02, 0.002);
}

TEST(TimeModel, NeverSaysThatSamplesAreFree) {
  TimeModel model;
  for (int i = 0; i < 50; ++i) {
    model.record(32, 1.05);
    model.record(64, 1.0);
  }
  EXPECT_GT(model.affine()->per_sample, 0);
  EXPECT_GE(model.affine()->fixed, 0);
  EXPECT_NEAR(model.affine()->seconds(48), 1.02, 0.05);
}

TEST(TimeModel, NeverHasANegativeFixedCost) {
  TimeModel model;
  for (int i = 0; i < 50; ++i) {
    model.record(32, 0.01);
    model.record(64, 0.04);
  }
  EXPECT_EQ(model.affine()->fixed, 0);
}

TEST(TimeModel, StartsFromWhatAnEarlierRunKnew) {
  TimeModel model(Affine{0.02, 0.001});
  EXPECT_EQ(model.affine(), (Affine{0.02, 0.001}));
  model.record(100, 0.12);
  EXPECT_NEAR(model.affine()->fixed, 0.02, 1e-6);
  for (int i = 0; i < 20; ++i) model.record(100, 0.24);
  EXPECT_NEAR(model.affine()->seconds(100), 0.24, 0.01);
}

}  // namespace
}  // namespace motley::plan
