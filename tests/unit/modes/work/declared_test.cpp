#include "modes/work/declared.h"

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
  for (std::uint32_t i = 0; i + 1 < DeclaredBounds::kEnough; ++i) bounds.counted(1, {8, 8, 16}, false);
  EXPECT_TRUE(bounds.likely(2, {8, 1e6, 16}));
  bounds.counted(1, {8, 8, 16}, false);
  EXPECT_FALSE(bounds.likely(2, {8, 1e6, 16}));
  EXPECT_FALSE(bounds.likely(2, {8, 8, -1e12}));
  EXPECT_TRUE(bounds.likely(2, {8, 24, 400})) << "steps differ";
}

TEST(DeclaredBounds, WhatItSaidItselfCountsUntilOthersSaidEnough) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(2, {8, 8, 16, {1e-2, 0}}, false);
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {1e20, 0}})) << "a card that goes bad while it works alone";
  bounds.counted(2, {8, 8, 16, {1e20, 0}}, false);
  EXPECT_TRUE(bounds.likely(2, {8, 8, 16, {1e20, 0}}));
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, {8, 8, 16, {1e-2, 0}}, false);
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {1e20, 0}})) << "now others say how large they are";
}

TEST(DeclaredBounds, OneOtherAloneDoesNotDecide) {
  const Declared usual{8, 8, 16, {1e-2, 0}}, nothing{8, 8, 16, {0, 0}}, huge{8, 8, 16, {1e20, 0}};
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, usual, false);
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(2, nothing, false);
  EXPECT_FALSE(bounds.likely(1, usual)) << "a second one computes it";
  EXPECT_TRUE(bounds.undecided(1, usual)) << "who says that it is nothing may lie";
  EXPECT_FALSE(bounds.undecided(1, huge)) << "it was never that large";
  EXPECT_FALSE(bounds.undecided(3, usual)) << "nothing is known of who comes anew";
  bounds.counted(1, huge, false);
  EXPECT_FALSE(bounds.undecided(1, huge)) << "it was not from the beginning";
  bounds.counted(3, nothing, false);
  EXPECT_FALSE(bounds.undecided(1, usual)) << "two say otherwise";
}

TEST(DeclaredBounds, TheHeadsOwnDeviceDecides) {
  const Declared usual{8, 8, 16, {1e-2, 0}}, nothing{8, 8, 16, {0, 0}};
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) {
    bounds.counted(1, usual, false);
    bounds.counted(2, nothing, true);
  }
  EXPECT_FALSE(bounds.likely(1, usual));
  EXPECT_FALSE(bounds.undecided(1, usual));
}

TEST(DeclaredBounds, AFewSamplesMayCarryAllTheWeight) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, {1000, 500, 900}, false);
  EXPECT_TRUE(bounds.likely(2, {1, 500, 900}));
}

TEST(DeclaredBounds, WhoWeighsNextToNothingDoesNotMakeAnythingLikely) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, {8, 8, 16, {1e-2, 4}}, false);
  bounds.counted(1, {8, 1e-300, 16, {1e-2, 4}}, false);
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {1e20, 4}}));
  EXPECT_FALSE(bounds.likely(2, {8, 8, -1e12, {1e-2, 4}}));
}

TEST(DeclaredBounds, GradientsAndStatisticsEachOnTheirOwn) {
  DeclaredBounds bounds;
  for (std::uint32_t i = 0; i < DeclaredBounds::kEnough; ++i) bounds.counted(1, {8, 8, 16, {1e-2, 400}}, false);
  EXPECT_TRUE(bounds.likely(2, {8, 8, 16, {1, 4e4}})) << "steps differ";
  EXPECT_TRUE(bounds.likely(2, {800, 800, 1600, {500, 4e6}})) << "sums over more samples";
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {400, 0}})) << "as large as a statistic may be";
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {0, 1e30}}));
  EXPECT_FALSE(bounds.likely(2, {8, 8, 16, {1e30, 0}}));
}

}  // namespace
}  // namespace motley::modes
