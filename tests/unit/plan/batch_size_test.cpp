#include "plan/batch_size.h"

#include <gtest/gtest.h>

#include <cmath>

namespace motley::plan {
namespace {

constexpr BatchRule kAdam{.first = 256, .most = 4096, .grain = 32, .adaptive = true};
constexpr BatchRule kSgd{.first = 256, .most = 4096, .grain = 32, .adaptive = false};

TEST(NextBatch, AtMostDoublesOrHalves) {
  EXPECT_EQ(next_batch(kAdam, 256, 100, 1e5, 3000)->batch, 512U);
  EXPECT_EQ(next_batch(kAdam, 2048, 100, 1e5, 300)->batch, 1024U);
}

TEST(NextBatch, GoesWhereItIsUsefulOnWholeGrains) {
  EXPECT_EQ(next_batch(kAdam, 512, 100, 1e5, 700)->batch, 672U);
  EXPECT_EQ(next_batch(kAdam, 1024, 100, 1e5, 700)->batch, 672U);
}

TEST(NextBatch, KeepsToItsBounds) {
  EXPECT_EQ(next_batch(kAdam, 400, 100, 10, 5)->batch, 256U) << "never less than the first";
  EXPECT_EQ(next_batch(kAdam, 3000, 100, 1e9, 1e9)->batch, 4096U);
  EXPECT_FALSE(next_batch(kAdam, 256, 100, 10, 5));
  EXPECT_FALSE(next_batch(kAdam, 4096, 100, 1e9, 1e9));
  EXPECT_EQ(next_batch({.first = 100, .most = 150, .grain = 64}, 100, 100, 1e9, 1e9)->batch, 128U);
}

TEST(NextBatch, StaysWhereLittleIsToGain) {
  EXPECT_FALSE(next_batch(kAdam, 512, 100, 1e4, 630));
  EXPECT_FALSE(next_batch(kAdam, 512, 100, 1e4, 420));
  EXPECT_FALSE(next_batch(kAdam, 256, 49, 1e4, 3000)) << "so soon";
}

TEST(NextBatch, TheRateGoesWithIt) {
  EXPECT_DOUBLE_EQ(next_batch(kAdam, 256, 100, 1e5, 3000)->rate, std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(next_batch(kSgd, 256, 100, 1e5, 3000)->rate, 2);
  EXPECT_DOUBLE_EQ(rate_for(kSgd, 1024, 512), 2 * std::sqrt(2.0)) << "linear to the noise scale, then its root";
  EXPECT_DOUBLE_EQ(rate_for(kSgd, 1024, 10), 2) << "the first batch is beyond the noise scale already";
  EXPECT_DOUBLE_EQ(rate_for(kSgd, 256, 10), 1);
}

}  // namespace
}  // namespace motley::plan
