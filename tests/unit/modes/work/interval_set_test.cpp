#include "modes/work/interval_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::modes {
namespace {

std::vector<Interval> ranges(const IntervalSet& set) { return {set.ranges().begin(), set.ranges().end()}; }

TEST(IntervalSet, MergesWhatTouches) {
  IntervalSet set;
  set.insert({10, 5});
  set.insert({20, 5});
  set.insert({15, 5});
  EXPECT_EQ(ranges(set), (std::vector<Interval>{{10, 15}}));
  EXPECT_EQ(set.size(), 15u);
}

TEST(IntervalSet, CountsOverlapsOnce) {
  IntervalSet set;
  set.insert({0, 4});
  set.insert({8, 4});
  set.insert({2, 8});
  EXPECT_EQ(ranges(set), (std::vector<Interval>{{0, 12}}));
  EXPECT_EQ(set.size(), 12u);
}

TEST(IntervalSet, ErasesAHole) {
  IntervalSet set(Interval{0, 10});
  set.erase({3, 4});
  EXPECT_EQ(ranges(set), (std::vector<Interval>{{0, 3}, {7, 3}}));
  EXPECT_TRUE(set.contains({0, 3}));
  EXPECT_FALSE(set.contains({2, 2}));
  EXPECT_TRUE(set.overlaps({2, 2}));
  EXPECT_FALSE(set.overlaps({3, 4}));
  set.erase({0, 100});
  EXPECT_TRUE(set.empty());
}

TEST(IntervalSet, NothingIsNothing) {
  IntervalSet set;
  set.insert({5, 0});
  set.erase({0, 0});
  EXPECT_TRUE(set.empty());
  EXPECT_TRUE(set.contains({3, 0}));
  EXPECT_FALSE(set.overlaps({3, 0}));
}

}  // namespace
}  // namespace motley::modes
