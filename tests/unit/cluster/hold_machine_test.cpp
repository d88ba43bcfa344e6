#include "cluster/hold_machine.h"

#include <gtest/gtest.h>

namespace motley::cluster {
namespace {

TEST(HoldMachine, AStepsHoldComesBeforeTheMarksWhichWaitsForItsEvaluation) {
  HoldMachine machine;
  machine.due(true, true);
  EXPECT_EQ(machine.begin(true), Hold::step);
  EXPECT_TRUE(machine.held());
  machine.release();
  EXPECT_EQ(machine.begin(true), Hold::none);
  EXPECT_EQ(machine.begin(false), Hold::mark);
  machine.release();
  EXPECT_EQ(machine.begin(false), Hold::none);
}

TEST(HoldMachine, NothingIsHeldThatIsNotDue) {
  HoldMachine machine;
  machine.due(false, false);
  EXPECT_EQ(machine.begin(false), Hold::none);
  EXPECT_FALSE(machine.held());
}

}  // namespace
}  // namespace motley::cluster
