#include <gtest/gtest.h>

#include "modes/work/pass_work.h"

namespace motley::modes {
namespace {

TEST(PassMachine, AStepIsCollectedUpdatedAndClosed) {
  PassMachine machine;
  machine.enter(PassState::collecting);
  machine.enter(PassState::updating);
  machine.enter(PassState::closing);
  machine.enter(PassState::closed);
  EXPECT_EQ(machine.state(), PassState::closed);
}

TEST(PassMachine, AnEvaluationUpdatesNothing) {
  EXPECT_TRUE(PassMachine::may_follow(PassState::collecting, PassState::closing));
}

TEST(PassMachine, WhatIsHalfUpdatedCannotBeGivenUp) {
  EXPECT_FALSE(PassMachine::may_follow(PassState::updating, PassState::closed));
  EXPECT_FALSE(PassMachine::may_follow(PassState::updating, PassState::collecting));
}

TEST(LeaseMachine, ALeaseEndsOnce) {
  LeaseMachine machine;
  machine.enter(LeaseState::begun);
  machine.enter(LeaseState::ended);
  for (const LeaseState state : {LeaseState::granted, LeaseState::begun, LeaseState::ended})
    EXPECT_FALSE(LeaseMachine::may_follow(machine, state));
}

}  // namespace
}  // namespace motley::modes
