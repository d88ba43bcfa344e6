#include "modes/exact/declared.h"

#include <gtest/gtest.h>

#include <limits>

namespace motley::modes {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(DeclaredBounds, WhatCanBe) {
  EXPECT_TRUE(DeclaredBounds::possible({8, 8, 20}));
  EXPECT_TRUE(DeclaredBounds::possible({8, 0, 0})) << "samples without an item that bears a loss";
  EXPECT_TRUE(DeclaredBounds::possible({8, 8 * 256, -1e6}));
  for (const double weight : {kNan, kInfinity, -kInfinity, -1.0, 1e30, 1e308})
    EXPECT_FALSE(DeclaredBounds::possible({8, weight, 1})) << weight;
  for (const double loss : {kNan, kInfinity, -kInfinity, 1e300, -1e300})
    EXPECT_FALSE(DeclaredBounds::possible({8, 8, loss})) << loss;
}

TEST(DeclaredBounds, EverythingIsLikelyUntilEnoughWasSaid) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i + 1 < DeclaredBounds::kEnough; ++i) bounds.counted(1, {8, 8, 16});
  EXPECT_TRUE(bounds.likely(2, {8, 1e6, 16}));
  bounds.counted(1, {8, 8, 16});
  EXPECT_FALSE(bounds.likely(2, {8, 1e6, 16}));
  EXPECT_FALSE(bounds.likely(2, {8, 8, -1e12}));
  EXPECT_TRUE(bounds.likely(2, {8, 24, 400})) << "steps differ";
}

TEST(DeclaredBounds, WhatItSaidItselfCountsUntilOthersSaidEnough) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(2, {8, 8, 16, {1e-2, 0}});
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {1e20, 0}})) << "a card that goes bad while it works alone";
  bounds.counted(2, {8, 8, 16, {1e20, 0}});
  EXPECT_TRUE(bounds.likely(2, {8, 8, 16, {1e20, 0}}));
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, {8, 8, 16, {1e-2, 0}});
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {1e20, 0}})) << "now others say how large they are";
}

TEST(DeclaredBounds, AFewSamplesMayCarryAllTheWeight) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, {1000, 500, 900});
  EXPECT_TRUE(bounds.likely(2, {1, 500, 900}));
}

TEST(DeclaredBounds, GradientsAndStatisticsEachOnTheirOwn) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, {8, 8, 16, {1e-2, 400}});
  EXPECT_TRUE(bounds.likely(2, {8, 8, 16, {1, 4e4}})) << "steps differ";
  EXPECT_TRUE(bounds.likely(2, {800, 800, 1600, {500, 4e6}})) << "sums over more samples";
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {400, 0}})) << "as large as a statistic may be";
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {0, 1e30}}));
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {1e30, 0}}));
}

}  // namespace
}  // namespace motley::modes
