#include "modes/exact/suspicion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "base/philox.h"

namespace motley::modes {
namespace {

// Gradients of all workers' samples are one vector and noise, half as large for samples of each by themselves.
class SuspicionTest : public testing::Test {
 protected:
  SuspicionTest() { draw(truth_, 1); }

  void draw(Bearing& bearing, double size) {
    for (float& sum : bearing) {
      double gaussian = -6;
      for (int i = 0; i < 12; ++i) gaussian += random_.uniform();
      sum += static_cast<float>(size * gaussian);
    }
  }
  /// A sum of so many samples, whose mean is `factor` times the truth, and noise.
  Bearing honest(double weight, double factor = 1) {
    Bearing sum{};
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = static_cast<float>(weight * factor * static_cast<double>(truth_[i]));
    draw(sum, noise_ * std::sqrt(weight));
    return sum;
  }
  /// A step of workers 1, 2, …, of whom the last multiplies its own by `factor`.
  std::optional<std::size_t> step(std::size_t workers, double factor = 1, bool believed = false) {
    std::vector<Bearing> bearings;
    for (std::size_t i = 0; i < workers; ++i)
      bearings.push_back(honest(static_cast<double>(8 * (i + 1)), i + 1 == workers ? factor : 1));
    std::vector<Pointing> parts;
    for (std::size_t i = 0; i < workers; ++i)
      parts.push_back({i + 1, static_cast<double>(8 * (i + 1)), &bearings[i], believed && i == 0});
    suspicion_.begin();
    return suspicion_.step(parts);
  }

  Philox random_{7, 0};
  Bearing truth_{};
  double noise_ = 4;  // a share's own is as large as the truth, or larger
  Suspicion suspicion_;
};

TEST_F(SuspicionTest, HonestWorkersAreSuspectedMoreRarelyThanItsNameSays) {
  constexpr int kSteps = 3000;
  int alarms = 0, at_once = 0;
  for (int i = 0; i < kSteps; ++i) {
    at_once += step(4) ? 1 : 0;
    for (WorkerId worker = 1; worker <= 4; ++worker) {
      if (!suspicion_.of(worker)) continue;
      ++alarms;
      suspicion_.cleared(worker);
    }
  }
  EXPECT_LE(alarms, 4 * kSteps * Suspicion::kFalseAlarms);
  EXPECT_LE(at_once, 1);
}

TEST_F(SuspicionTest, WhoAlwaysPointsTheOtherWayIsSuspectedSoon) {
  for (int i = 0; i < 12; ++i) step(3, -1);
  EXPECT_TRUE(suspicion_.of(3));
  EXPECT_FALSE(suspicion_.of(1));
  EXPECT_FALSE(suspicion_.of(2));
}

TEST_F(SuspicionTest, OfTwoItIsTheOneWhoIsNotBelieved) {
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(2, -1));
  EXPECT_FALSE(suspicion_.of(1));
  EXPECT_FALSE(suspicion_.of(2)) << "nobody knows which";
  for (int i = 0; i < 20; ++i) step(2, -1, true);
  EXPECT_FALSE(suspicion_.of(1));
  EXPECT_TRUE(suspicion_.of(2));
}

TEST_F(SuspicionTest, OneStepOfMany) {
  noise_ = 1;
  for (int i = 0; i < 100; ++i) {
    const bool lies = i % 25 == 24;
    EXPECT_EQ(step(4, lies ? -1 : 1), lies ? std::optional<std::size_t>(3) : std::nullopt) << i;
  }
  EXPECT_FALSE(suspicion_.of(4)) << "it is found step by step";
}

TEST_F(SuspicionTest, RightAnswersAfterALieDoNotMakeItUsual) {
  noise_ = 1;
  for (int i = 0; i < 200; ++i) {
    const bool lies = i % 25 == 24;
    EXPECT_EQ(step(4, lies ? -20 : 1).has_value(), lies) << i;
    if (i % 25 < 3) suspicion_.cleared(4);
  }
}

TEST_F(SuspicionTest, WhatWasLookedAtAndRightIsUsual) {
  for (int i = 0; i < 12; ++i) step(4, 5);
  ASSERT_TRUE(suspicion_.of(4));
  int looks = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool far = step(4, 5).has_value();
    if (!far && !suspicion_.of(4)) continue;
    ++looks;
    suspicion_.cleared(4);
  }
  EXPECT_LE(looks, 8);
  for (int i = 0; i < 40 && !suspicion_.of(4); ++i) step(4, -9);
  EXPECT_TRUE(suspicion_.of(4)) << "beyond what is usual for it";
}

TEST_F(SuspicionTest, WhatSecondLooksDoNotFindIsNotSuspected) {
  noise_ = 0;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(step(4, 1.05));
  EXPECT_FALSE(suspicion_.of(4));
}

TEST_F(SuspicionTest, NothingIsSaidOfWhatIsNotThere) {
  Bearing one = honest(8), other = honest(8), none{};
  EXPECT_FALSE(suspicion_.step({}));
  const Pointing alone[] = {{1, 8, &one}};
  EXPECT_FALSE(suspicion_.step(alone));
  const Pointing without[] = {{1, 8, &one}, {2, 8, nullptr}, {3, 8, &other}};
  EXPECT_FALSE(suspicion_.step(without));
  const Pointing empty[] = {{1, 8, &one}, {2, 0, &none}, {3, 8, &other}};
  EXPECT_FALSE(suspicion_.step(empty));
  const Pointing zeros[] = {{1, 8, &none}, {2, 8, &none}, {3, 8, &none}};
  EXPECT_FALSE(suspicion_.step(zeros));
}

}  // namespace
}  // namespace motley::modes
