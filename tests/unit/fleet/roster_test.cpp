#include "fleet/roster.h"

#include <gtest/gtest.h>

namespace motley::fleet {
namespace {

TEST(Roster, ThreeStrikesAreOut) {
  Roster members;
  EXPECT_FALSE(members.strike(1, 10));
  EXPECT_FALSE(members.strike(1, 11));
  EXPECT_FALSE(members.record(1).excluded);
  EXPECT_TRUE(members.strike(1, 12));
  EXPECT_TRUE(members.record(1).excluded);
  EXPECT_FALSE(members.record(2).excluded);
}

TEST(Roster, StrikesAreForgivenWithTime) {
  Roster members;
  members.strike(1, 0);
  members.strike(1, 1);
  EXPECT_FALSE(members.strike(1, 1 + Roster::kStrikeDecaySteps));
  EXPECT_EQ(members.record(1).strikes, 2u);
  EXPECT_FALSE(members.strike(1, 10 * Roster::kStrikeDecaySteps));
  EXPECT_EQ(members.record(1).strikes, 1u);
}

TEST(Roster, StrikesByLooksAreForgivenForRightAnswersAlone) {
  Roster members;
  members.refute(1, 0);
  members.refute(1, 1000 * Roster::kStrikeDecaySteps);
  EXPECT_EQ(members.record(1).all_strikes(), 2U) << "not with time";
  for (std::uint32_t i = 0; i < Roster::kRightToForgive; ++i) members.confirm(1);
  EXPECT_EQ(members.record(1).all_strikes(), 1U);
  for (std::uint32_t i = 1; i < Roster::kRightToForgive; ++i) members.confirm(1);
  EXPECT_FALSE(members.refute(1, 1000 * Roster::kStrikeDecaySteps));
  members.confirm(1);
  EXPECT_EQ(members.record(1).all_strikes(), 2U) << "it begins anew with each";
  EXPECT_TRUE(members.refute(1, 1000 * Roster::kStrikeDecaySteps));
}

TEST(Roster, StrikesOfBothKindsCount) {
  Roster members;
  members.strike(1, 10);
  members.refute(1, 20);
  EXPECT_FALSE(members.record(1).excluded);
  EXPECT_TRUE(members.refute(1, 30));
  members.strike(2, 10);
  members.refute(2, 10 + Roster::kStrikeDecaySteps);
  EXPECT_EQ(members.record(2).all_strikes(), 1U);
  EXPECT_FALSE(members.strike(2, 20 + Roster::kStrikeDecaySteps));
}

TEST(Roster, ShiftMovesNothingIntoTheFuture) {
  Roster members;
  members.open(1, false, Time(10));
  members.find(1)->heard = Time(90);
  members.shift(Duration(50), Time(100));
  EXPECT_EQ(members.find(1)->opened, Time(60));
  EXPECT_EQ(members.find(1)->heard, Time(100));
}

}  // namespace
}  // namespace motley::fleet
