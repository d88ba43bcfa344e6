#include "plan/round_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::plan {
namespace {

using testing::HasSubstr;

double price(std::uint64_t parameters, std::size_t workers, std::uint64_t steps = 30) {
  const std::optional<RoundPrice> found = round_price(parameters, workers, steps);
  EXPECT_TRUE(found);
  return found ? found->percent : 0;
}

TEST(RoundPrice, IsThePublishedOne) {
  EXPECT_NEAR(price(35'000'000, 2), 0.7, 1e-9);
  EXPECT_NEAR(price(90'000'000, 4), 1.5, 1e-9);
  EXPECT_NEAR(price(180'000'000, 8), 2.3, 1e-9);
  EXPECT_NEAR(price(335'000'000, 1), -0.3, 1e-9);
  EXPECT_NEAR(price(2'400'000'000, 4), 0.3, 1e-9);
  EXPECT_FALSE(round_price(35'000'000, 2, 30)->smaller);
}

TEST(RoundPrice, LiesBetweenWhatIsPublished) {
  EXPECT_NEAR(price(127'279'220, 4), 1.3, 1e-6);  // the middle of 90 and 180 million in their logarithms
  EXPECT_GT(price(124'000'000, 3), price(124'000'000, 2));
  EXPECT_LT(price(124'000'000, 3), price(124'000'000, 4));
  EXPECT_NEAR(price(90'000'000, 3), 0.5 + (1.5 - 0.5) * 0.5849625007, 1e-9);
  EXPECT_NEAR(price(10'000'000'000, 4), 0.3, 1e-9);  // no less than the largest
}

TEST(RoundPrice, RisesBelowWhatIsPublishedAndWithTheLengthOfARound) {
  const std::optional<RoundPrice> small = round_price(10'900'000, 4, 30);
  ASSERT_TRUE(small);
  EXPECT_TRUE(small->smaller);
  EXPECT_GT(small->percent, 2.0);
  EXPECT_LT(small->percent, 3.0);
  EXPECT_NEAR(price(90'000'000, 4, 300), 1.5 * 1.35, 1e-9);
  EXPECT_LT(price(90'000'000, 4, 10), 1.5);
}

TEST(RoundPrice, IsNotKnownFarFromWhatIsPublished) {
  EXPECT_FALSE(round_price(9'999'999, 2, 30));
  EXPECT_FALSE(round_price(90'000'000, 9, 30));
  EXPECT_FALSE(round_price(90'000'000, 0, 30));
  EXPECT_FALSE(round_price(90'000'000, 2, 9));
  EXPECT_FALSE(round_price(90'000'000, 2, 301));
}

TEST(RoundPrice, WhatSpeaksAgainstRoundsIsSaid) {
  const RunOutline run{.text = true, .parameters = 90'000'000, .steps = 6000};
  EXPECT_EQ(against_rounds(run, 4, 30), "");
  const auto but = [&](auto change) {
    RunOutline other = run;
    change(other);
    return against_rounds(other, 4, 30);
  };
  EXPECT_THAT(but([](RunOutline& r) { r.text = false; }), HasSubstr("not tested for this kind of model"));
  EXPECT_THAT(but([](RunOutline& r) { r.parameters = 9'000'000; }), HasSubstr("and this model has 9000000"));
  EXPECT_THAT(but([](RunOutline& r) { r.steps = 4499; }), HasSubstr("150 rounds and more, and this run has 149"));
  EXPECT_THAT(against_rounds(run, 9, 30), HasSubstr("more than 8 workers"));
  EXPECT_THAT(against_rounds(run, 4, 301), HasSubstr("not for 301"));
}

TEST(RoundPrice, IsPaidInSamples) {
  EXPECT_DOUBLE_EQ(worth(226, 1), 200);
  EXPECT_DOUBLE_EQ(worth(200, 0), 200);
  EXPECT_GT(worth(200, -0.1), 200);
}

}  // namespace
}  // namespace motley::plan
