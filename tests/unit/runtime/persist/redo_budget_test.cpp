#include "runtime/persist/redo_budget.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

constexpr std::size_t kSome = std::size_t{100} << 20;
constexpr Time kLater = std::chrono::hours(1);

TEST(RedoBudget, BeginsWithACheckpointAndEndsWithAGap) {
  RedoBudget budget;
  EXPECT_FALSE(budget.take(1, kLater));
  budget.begin();
  EXPECT_TRUE(budget.take(1, kLater));
  budget.pause();
  EXPECT_FALSE(budget.take(1, kLater));
  budget.begin();
  EXPECT_TRUE(budget.take(1, kLater));
}

TEST(RedoBudget, FollowsWhatMayBeWrittenASecond) {
  RedoBudget budget;
  budget.begin();
  for (int step = 0; step < 4; ++step) EXPECT_TRUE(budget.take(kSome, kLater));
  EXPECT_FALSE(budget.take(kSome, kLater));
  EXPECT_FALSE(budget.take(1, kLater)) << "a step is missing";
  budget.begin();
  EXPECT_FALSE(budget.take(kSome, kLater));
  budget.begin();
  EXPECT_TRUE(budget.take(kSome, kLater + std::chrono::seconds(3)));
}

TEST(RedoBudget, LeavesRoomForWhatWaitsForTheDisk) {
  RedoBudget budget;
  budget.begin();
  EXPECT_TRUE(budget.take(kSome, kLater));
  budget.queued(2 * kSome);
  EXPECT_FALSE(budget.take(kSome, kLater));
  budget.written(2 * kSome);
  budget.begin();
  EXPECT_TRUE(budget.take(kSome, kLater));
  EXPECT_FALSE(budget.take(3 * kSome, kLater + kLater)) << "more than may ever wait";
}

}  // namespace
}  // namespace motley::runtime
