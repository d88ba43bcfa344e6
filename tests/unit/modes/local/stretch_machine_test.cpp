#include <gtest/gtest.h>

#include "modes/local/local_mode.h"

namespace motley::modes {
namespace {

TEST(StretchMachine, WhatIsLentEndsByItselfOrIsCutOnce) {
  EXPECT_TRUE(StretchMachine::may_follow(StretchState::none, StretchState::lent));
  EXPECT_TRUE(StretchMachine::may_follow(StretchState::lent, StretchState::none));
  EXPECT_TRUE(StretchMachine::may_follow(StretchState::lent, StretchState::cut));
  EXPECT_FALSE(StretchMachine::may_follow(StretchState::cut, StretchState::cut));
  EXPECT_FALSE(StretchMachine::may_follow(StretchState::lent, StretchState::lent));
}

}  // namespace
}  // namespace motley::modes
