#include "ps/outer_rate.h"

#include <gtest/gtest.h>

namespace motley::ps {
namespace {

TEST(OuterRate, IsThePublishedOne) {
  EXPECT_DOUBLE_EQ(outer_rate(1), 0.4);
  EXPECT_DOUBLE_EQ(outer_rate(2), 0.6);
  EXPECT_DOUBLE_EQ(outer_rate(4), 0.6);
  EXPECT_DOUBLE_EQ(outer_rate(8), 0.8);
}

TEST(OuterRate, LiesBetweenItsNeighbours) {
  EXPECT_DOUBLE_EQ(outer_rate(3), 0.6);
  EXPECT_DOUBLE_EQ(outer_rate(5), 0.65);
  EXPECT_DOUBLE_EQ(outer_rate(7), 0.75);
  EXPECT_DOUBLE_EQ(outer_rate(256), 0.8);
}

}  // namespace
}  // namespace motley::ps
