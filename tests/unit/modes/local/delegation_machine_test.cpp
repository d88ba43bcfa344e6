#include <gtest/gtest.h>

#include "modes/local/local_mode.h"

namespace motley::modes {
namespace {

TEST(DelegationMachine, ADelegationEndsByItselfOrIsCutOnce) {
  EXPECT_TRUE(DelegationMachine::may_follow(DelegationState::none, DelegationState::delegated));
  EXPECT_TRUE(DelegationMachine::may_follow(DelegationState::delegated, DelegationState::none));
  EXPECT_TRUE(DelegationMachine::may_follow(DelegationState::delegated, DelegationState::cut));
  EXPECT_FALSE(DelegationMachine::may_follow(DelegationState::cut, DelegationState::cut));
  EXPECT_FALSE(DelegationMachine::may_follow(DelegationState::delegated, DelegationState::delegated));
}

}  // namespace
}  // namespace motley::modes
