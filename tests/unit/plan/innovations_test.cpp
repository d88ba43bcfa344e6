#include "plan/innovations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace motley::plan {
namespace {

constexpr Innovations::Noise kNoise{.first = 0.05, .least = 0.01, .most = 0.3};

TEST(Innovations, WhatIsWithinThreeDeviationsCountsAsItIs) {
  Innovations gate(kNoise);
  const Innovation judged = gate.judge(0.1, 0.0025);
  EXPECT_DOUBLE_EQ(judged.off, 0.1);
  EXPECT_DOUBLE_EQ(judged.noise, 0.0025);
  EXPECT_EQ(judged.grown, 0);
  EXPECT_FALSE(judged.change);
}

TEST(Innovations, AHiccupIsCut) {
  Innovations gate(kNoise);
  EXPECT_NEAR(gate.judge(9, 0).off, 0.15, 1e-9);
  EXPECT_FALSE(gate.judge(0, 0).change);
  EXPECT_FALSE(gate.judge(9, 0).change) << "not in a row";
  EXPECT_FALSE(gate.judge(-0.9, 0).change) << "on the other side";
}

TEST(Innovations, TwoInARowThatAgreeCountAsBoth) {
  Innovations gate(kNoise);
  gate.judge(1.0, 0);
  const Innovation judged = gate.judge(1.1, 0);
  EXPECT_TRUE(judged.change);
  EXPECT_NEAR(judged.off, 1.05, 1e-9);
  EXPECT_DOUBLE_EQ(judged.noise, gate.noise() / 2);
  EXPECT_FALSE(gate.judge(1.1, 0).change) << "it begins anew";
}

TEST(Innovations, OfTwoInARowThatDoNotAgreeTheNearerIsBelieved) {
  for (const double first : {30.0, 2.0}) {
    Innovations gate(kNoise);
    gate.judge(first, 0);
    const Innovation judged = gate.judge(32 - first, 0);
    EXPECT_TRUE(judged.change);
    EXPECT_NEAR(judged.off, 2, 1e-9);
    EXPECT_DOUBLE_EQ(judged.noise, gate.noise());
  }
}

TEST(Innovations, ASmallChangeIsFoundByTheMeanOfSeveral) {
  Innovations gate(kNoise);
  int passes = 1;
  while (gate.judge(0.08, 0).grown == 0 && passes < 100) ++passes;
  EXPECT_GT(passes, 2);
  EXPECT_LT(passes, 12);
  for (int pass = 0; pass < 100; ++pass) EXPECT_EQ(gate.judge(pass % 2 == 0 ? 0.05 : -0.05, 0).grown, 0);
}

TEST(Innovations, LearnsTheNoiseWithinBounds) {
  Innovations quiet(kNoise), usual(kNoise), loud(kNoise);
  for (int pass = 0; pass < 300; ++pass) {
    const int side = pass % 2 == 0 ? 1 : -1;
    quiet.judge(0, 0);
    usual.judge(side * 0.1, 0);
    loud.judge(side * 9, 0);
  }
  EXPECT_NEAR(std::sqrt(quiet.noise()), 0.01, 1e-9);
  EXPECT_NEAR(std::sqrt(usual.noise()), 0.1, 0.001);
  EXPECT_NEAR(std::sqrt(loud.noise()), 0.3, 1e-9);
}

}  // namespace
}  // namespace motley::plan
