#include "plan/way_in_use.h"

#include <gtest/gtest.h>

#include <array>

namespace motley::plan {
namespace {

TEST(WayInUse, IsUntriedUntilAPassWentItOrForSomePasses) {
  WayInUse way(true);
  for (std::uint32_t pass = 0; pass < WayInUse::kUntried; ++pass) {
    EXPECT_TRUE(way.untried());
    way.closed(false);
  }
  EXPECT_FALSE(way.untried());
  way.begin();
  way.closed(true);
  EXPECT_FALSE(way.untried());
  EXPECT_TRUE(way.in_sums());
  way.begin();
  way.known();
  EXPECT_FALSE(way.untried());
}

TEST(WayInUse, IsPatientWhileItIsUntriedWithinBounds) {
  WayInUse way(true);
  EXPECT_DOUBLE_EQ(way.patience(0), 2 * kSlowVersion);
  EXPECT_DOUBLE_EQ(way.patience(1), 2);
  EXPECT_DOUBLE_EQ(way.patience(1e9), 5);
  way.known();
  EXPECT_EQ(way.patience(1), 0);
}

TEST(SumParts, ShareWhatTheSumTakesBeyondTheLongestComputing) {
  std::array parts{SumPart{.seconds = 3, .computed = 1}, SumPart{.seconds = 3, .computed = 2.5}};
  share_waiting(parts);
  EXPECT_DOUBLE_EQ(parts[0].seconds, 1.5);
  EXPECT_DOUBLE_EQ(parts[1].seconds, 3);
}

TEST(SumParts, NobodyComputesForLongerThanItTook) {
  std::array parts{SumPart{.seconds = 3, .computed = 1}, SumPart{.seconds = 3, .computed = 1e9}};
  share_waiting(parts);
  EXPECT_DOUBLE_EQ(parts[0].seconds, 1);
  EXPECT_DOUBLE_EQ(parts[1].seconds, 3);
}

}  // namespace
}  // namespace motley::plan
