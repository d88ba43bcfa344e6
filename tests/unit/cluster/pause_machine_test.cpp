#include "cluster/pause_machine.h"

#include <gtest/gtest.h>

namespace motley::cluster {
namespace {

TEST(PauseMachine, AStepsPauseComesBeforeTheEvalPointsWhichWaitsForItsEvaluation) {
  PauseMachine machine;
  machine.due(true, true);
  EXPECT_EQ(machine.begin(true), Pause::step);
  EXPECT_TRUE(machine.paused());
  machine.resume();
  EXPECT_EQ(machine.begin(true), Pause::none);
  EXPECT_EQ(machine.begin(false), Pause::eval_point);
  machine.resume();
  EXPECT_EQ(machine.begin(false), Pause::none);
}

TEST(PauseMachine, NothingIsPausedThatIsNotDue) {
  PauseMachine machine;
  machine.due(false, false);
  EXPECT_EQ(machine.begin(false), Pause::none);
  EXPECT_FALSE(machine.paused());
}

}  // namespace
}  // namespace motley::cluster
