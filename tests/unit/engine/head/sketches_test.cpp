#include "engine/head/sketches.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/philox.h"

namespace motley::engine {
namespace {

std::vector<float> gradient(std::uint64_t seed) {
  Philox random(seed);
  std::vector<float> values(5000);
  for (float& value : values) value = static_cast<float>(random.gaussian());
  return values;
}

class SketchesTest : public testing::Test {
 protected:
  void add(std::uint64_t lease, const std::vector<float>& of, ChunkId chunk = 0) {
    sketches.add(lease, chunk, ChunkKind::large, codec::Encoded(of));
  }
  Sketches sketches{17};
  const std::vector<float> values = gradient(1);
};

TEST_F(SketchesTest, RoundingIsNoDifference) {
  std::vector<float> rounded = values;
  for (float& value : rounded) value *= 1.01F;
  add(1, values);
  add(2, rounded);
  EXPECT_FALSE(sketches.differ(1, 2, 0));
  EXPECT_FALSE(sketches.differ(1, 3, 0)) << "not there";
  EXPECT_FALSE(sketches.differ(1, 2, 1)) << "not there";
}

TEST_F(SketchesTest, AnotherGradientIsOne) {
  add(1, values);
  std::vector<float> scaled = values, flipped = values, spoiled = values;
  for (float& value : scaled) value *= 1.2F;
  for (std::size_t i = 0; i < 50; ++i) flipped[i] = -flipped[i];
  spoiled[4999] = 1e30F;
  add(2, scaled);
  add(3, flipped);
  add(4, spoiled);
  add(5, gradient(2));
  for (const std::uint64_t other : {2U, 3U, 4U, 5U}) {
    EXPECT_TRUE(sketches.differ(1, other, 0)) << other;
    EXPECT_TRUE(sketches.differ(other, 1, 0)) << other;
  }
}

TEST_F(SketchesTest, WhatIsNothingBesideTheRestMayBeAnything) {
  for (const std::uint64_t lease : {1U, 2U}) {
    add(lease, values);
    std::vector<float> noise = gradient(lease);
    for (float& value : noise) value *= 1e-6F;
    add(lease, noise, 1);
  }
  EXPECT_FALSE(sketches.differ(1, 2, 1));
  sketches.clear();
  add(1, values);
  add(2, gradient(2));
  EXPECT_TRUE(sketches.differ(1, 2, 0));
}

}  // namespace
}  // namespace motley::engine
