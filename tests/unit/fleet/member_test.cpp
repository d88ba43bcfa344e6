#include "fleet/member.h"

#include <gtest/gtest.h>

#include <array>

namespace motley::fleet {
namespace {

constexpr std::array kStates{MemberState::loading, MemberState::syncing,  MemberState::calibrating, MemberState::member,
                             MemberState::parked,  MemberState::yielding, MemberState::excluded};

TEST(MemberMachine, NobodyLoadsAgainOrComesBackFromExclusion) {
  for (const MemberState from : kStates) {
    EXPECT_FALSE(MemberMachine::may_follow(from, MemberState::loading));
    EXPECT_FALSE(MemberMachine::may_follow(MemberState::excluded, from));
    EXPECT_EQ(MemberMachine::may_follow(from, MemberState::excluded), from != MemberState::excluded);
  }
}

TEST(MemberMachine, WhoYieldsIsNotAskedBack) {
  for (const MemberState to :
       {MemberState::syncing, MemberState::calibrating, MemberState::member, MemberState::parked})
    EXPECT_FALSE(MemberMachine::may_follow(MemberState::yielding, to));
}

TEST(MemberMachine, WhoLoadsIsAdmittedFirst) {
  MemberMachine machine;
  EXPECT_EQ(machine.state(), MemberState::loading);
  EXPECT_FALSE(MemberMachine::may_follow(machine, MemberState::member));
  machine.enter(MemberState::syncing);
  machine.enter(MemberState::member);
  machine.enter(MemberState::parked);
  machine.enter(MemberState::member);
  EXPECT_EQ(machine.state(), MemberState::member);
}

TEST(MemberMachineDeathTest, AnIllegalStepAsserts) {
  MemberMachine machine;
  EXPECT_DEATH(machine.enter(MemberState::parked), "");
}

}  // namespace
}  // namespace motley::fleet
