#include "modes/not_finite.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::modes {
namespace {

using fleet::MemberState;
using fleet::WorkerId;

/// Workers 1, 2, …, each with a session of its number.
fleet::Roster roster_of(std::vector<MemberState> states, bool first_is_local = false) {
  fleet::Roster roster;
  for (std::uint64_t number = 1; number <= states.size(); ++number) {
    fleet::Member& member = roster.open(number, first_is_local && number == 1, Time(0));
    member.worker = number;
    member.state.enter(MemberState::syncing);
    member.state.enter(MemberState::member);
    if (states[number - 1] == MemberState::excluded) member.state.enter(MemberState::excluded);
  }
  return roster;
}

bool enough(const fleet::Roster& roster, std::vector<WorkerId> said) { return enough_say_so(roster, said); }

constexpr MemberState kHere = MemberState::member, kOut = MemberState::excluded;

TEST(NotFinite, AllWhoAreHereMustSayIt) {
  const fleet::Roster two = roster_of({kHere, kHere});
  EXPECT_FALSE(enough(two, {WorkerId{1}}));
  EXPECT_TRUE(enough(two, {WorkerId{1}, WorkerId{2}}));
}

TEST(NotFinite, ThreeAreEnough) {
  const fleet::Roster five = roster_of({kHere, kHere, kHere, kHere, kHere});
  EXPECT_FALSE(enough(five, {WorkerId{1}, WorkerId{2}}));
  EXPECT_TRUE(enough(five, {WorkerId{1}, WorkerId{2}, WorkerId{5}}));
}

TEST(NotFinite, TheHeadsOwnDeviceDecidesWithAnother) {
  const fleet::Roster three = roster_of({kHere, kHere, kHere}, true);
  EXPECT_FALSE(enough(three, {WorkerId{2}, WorkerId{3}}));
  EXPECT_FALSE(enough(three, {WorkerId{1}}));
  EXPECT_TRUE(enough(three, {WorkerId{1}, WorkerId{3}}));
  EXPECT_TRUE(enough(roster_of({kHere}, true), {WorkerId{1}}));
}

TEST(NotFinite, WhoIsExcludedHasNoSay) {
  const fleet::Roster one_out = roster_of({kHere, kHere, kOut});
  EXPECT_FALSE(enough(one_out, {WorkerId{2}, WorkerId{3}}));
  EXPECT_TRUE(enough(one_out, {WorkerId{1}, WorkerId{2}, WorkerId{3}}));
}

}  // namespace
}  // namespace motley::modes
