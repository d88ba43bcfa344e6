#include <gtest/gtest.h>

#include "modes/rounds/round_plan.h"

namespace motley::modes {
namespace {

TEST(RoundPlan, SlicesAreWholeUnitsAndTileTheRound) {
  struct Row {
    std::vector<std::uint64_t> counts;
    std::uint64_t unit;
    std::vector<Interval> slices;
  };
  const std::vector<Row> rows{
      {{60, 60}, 10, {{0, 60}, {60, 60}}},
      {{64, 56}, 10, {{0, 60}, {60, 60}}},
      {{66, 54}, 10, {{0, 70}, {70, 50}}},
      {{0, 120}, 10, {{}, {0, 120}}},
      {{3, 117}, 10, {{}, {0, 120}}},       // less than a unit: the neighbour has it
      {{117, 3}, 10, {{0, 120}, {}}},       // likewise
      {{60, 65}, 10, {{0, 60}, {60, 65}}},  // the end of an epoch
      {{4, 5}, 10, {{}, {0, 9}}},           // less than a unit in all
      {{50, 3, 67}, 10, {{0, 50}, {}, {50, 70}}},
      {{33, 33, 34}, 1, {{0, 33}, {33, 33}, {66, 34}}},
  };
  for (const Row& row : rows) EXPECT_EQ(slices(row.counts, row.unit), row.slices) << testing::PrintToString(row.counts);
}

TEST(RoundPlan, OwedPositionsComeFirst) {
  const RoundSpans spans{{1, 5, 3}, {3, 0, 10}};
  EXPECT_EQ(positions(spans), 13U);
  EXPECT_EQ(parts_of(spans, {0, 13}), spans);
  EXPECT_EQ(parts_of(spans, {2, 4}), (RoundSpans{{1, 7, 1}, {3, 0, 3}}));
  EXPECT_EQ(parts_of(spans, {3, 10}), (RoundSpans{{3, 0, 10}}));
}

TEST(RoundPlan, ALeaseHasNoMoreThanAWorkerTakes) {
  const RoundSpans spans{{1, 5, 3}, {2, 0, 4}, {3, 0, 10}};
  EXPECT_EQ(first_part(spans, {0, 17}, 17, 3), (Interval{0, 17}));
  EXPECT_EQ(first_part(spans, {0, 17}, 6, 3), (Interval{0, 6}));
  EXPECT_EQ(first_part(spans, {0, 17}, 17, 2), (Interval{0, 7}));
  EXPECT_EQ(first_part(spans, {2, 15}, 17, 1), (Interval{2, 1}));
  EXPECT_EQ(first_part(spans, {3, 14}, 17, 1), (Interval{3, 4}));
  EXPECT_EQ(first_part(spans, {4, 2}, 17, 1), (Interval{4, 2}));
}

TEST(RoundPlan, TakesNoMoreThanItIsAskedFor) {
  RoundSpans owed{{0, 0, 4}, {1, 8, 4}, {2, 0, 1}};
  EXPECT_EQ(take_first(owed, 6), (RoundSpans{{0, 0, 4}, {1, 8, 2}}));
  EXPECT_EQ(owed, (RoundSpans{{1, 10, 2}, {2, 0, 1}}));
  EXPECT_EQ(take_first(owed, 100), (RoundSpans{{1, 10, 2}, {2, 0, 1}}));
  EXPECT_TRUE(owed.empty());
}

TEST(RoundPlan, PiecesThatFollowEachOtherAreOne) {
  RoundSpans spans;
  append(spans, {1, 0, 4});
  append(spans, {1, 4, 4});
  append(spans, {1, 9, 1});
  append(spans, {2, 10, 1});
  EXPECT_EQ(spans, (RoundSpans{{1, 0, 8}, {1, 9, 1}, {2, 10, 1}}));
}

}  // namespace
}  // namespace motley::modes
