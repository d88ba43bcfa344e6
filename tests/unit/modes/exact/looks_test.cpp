#include "modes/exact/looks.h"

#include <gtest/gtest.h>

namespace motley::modes {
namespace {

constexpr double kPart = 0.005;

TEST(Looks, EachWorkerIsLookedAtOnceEarly) {
  Looks looks(1, 0);
  std::uint64_t share = 0;
  while (looks.due(7, false) != Looks::Why::first) {
    looks.has_share(7, false);
    ASSERT_LE(++share, Looks::kFirstFrom + Looks::kFirstWithin);
  }
  EXPECT_GE(share, Looks::kFirstFrom);
  looks.right(7);
  for (int i = 0; i < 100; ++i) looks.has_share(7, false);
  EXPECT_FALSE(looks.due(7, false));
  EXPECT_EQ(looks.due(7, true), Looks::Why::suspected);
}

TEST(Looks, AWatchedWorkerIsLookedAtInItsFirstShare) {
  Looks looks(1, 0);
  looks.has_share(7, true);
  EXPECT_EQ(looks.due(7, false), Looks::Why::first);
  looks.right(7);
  EXPECT_FALSE(looks.due(7, false));
}

TEST(Looks, WhoWasWrongIsLookedAtNextUntilItIsRightSomeTimes) {
  Looks looks(1, 0);
  looks.wrong(7);
  for (std::uint32_t i = 0; i < Looks::kFollowing; ++i) {
    EXPECT_EQ(looks.due(7, true), Looks::Why::wrong);
    looks.right(7);
  }
  EXPECT_FALSE(looks.due(7, false));
}

TEST(Looks, TakeNoMoreThanTheirPartAndWhatIsOwed) {
  Looks looks(1, 0);
  constexpr int kPasses = 100000;
  double taken = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    looks.earn(kPart);
    if (!looks.affords(Looks::Why::suspected, 1)) continue;
    looks.pay(1);
    taken += 1;
  }
  EXPECT_LE(taken, kPasses * kPart + Looks::kOwedForSuspected);
  EXPECT_GE(taken, kPasses * kPart);
  EXPECT_LT(looks.by_chance(kPart), kPart) << "chance chooses more rarely, and goes on to choose";
  EXPECT_GT(looks.by_chance(kPart), 0);
  EXPECT_FALSE(looks.affords(Looks::Why::first, 1));
  EXPECT_TRUE(looks.affords(Looks::Why::wrong, 1)) << "kept for who was wrong";
}

TEST(Looks, SaveLittle) {
  Looks looks(1, 0);
  for (int pass = 0; pass < 100000; ++pass) looks.earn(kPart);
  EXPECT_FALSE(looks.affords(Looks::Why::first, Looks::kOwedForFirst + Looks::kSavedMost + 1));
}

}  // namespace
}  // namespace motley::modes
