#include <gtest/gtest.h>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

using std::chrono::seconds;

class HoldsTest : public SoloTest {
 protected:
  HoldsTest() { config.holds = Holds::marks; }  // 12 steps, 4 an epoch; steps alone from the third on
  void release() { happen(Released{machine->version()}); }
  /// To the first mark.
  void hold() {
    make();
    by_itself(2);
    ended();
  }
};

TEST_F(HoldsTest, AStretchEndsAtTheMarkAndIsLentAgainWhenTheRunIsReleased) {
  make();
  EXPECT_EQ(last(ActionKind::lend).range, (Interval{2, 2}));
  by_itself(2);
  EXPECT_FALSE(machine->held()) << "the stretch has not ended";
  ended();
  EXPECT_TRUE(machine->held());
  EXPECT_EQ(last(ActionKind::hold).version, 4U);
  EXPECT_FALSE(last(ActionKind::hold).urgent);
  EXPECT_EQ(count(ActionKind::lend), 0U);
  release();
  EXPECT_FALSE(machine->held());
  EXPECT_EQ(last(ActionKind::lend).range, (Interval{4, 4})) << "no passes by lease before it";
}

TEST_F(HoldsTest, TheEvaluationComesBeforeTheHold) {
  config.test_samples = 5;
  hold();
  EXPECT_FALSE(machine->held());
  const Action grant = last(ActionKind::grant);
  happen(LeaseFinished{grant.session, grant.lease, 5, 5, 0, 0});
  EXPECT_TRUE(machine->held());
  release();
  EXPECT_TRUE(machine->stretch().has_value());
}

TEST_F(HoldsTest, EveryStepIsHeldAndMarksOnceMore) {
  config.holds = Holds::steps;
  config.test_samples = 5;
  config.evaluate_every = 2;
  start();
  join(1, true);
  by_lease();
  EXPECT_TRUE(last(ActionKind::hold).urgent);
  release();
  by_lease();
  EXPECT_TRUE(last(ActionKind::hold).urgent);
  EXPECT_EQ(count(ActionKind::hold), 2U);
  EXPECT_EQ(count(ActionKind::lend), 0U);
  release();
  ASSERT_TRUE(machine->pass().has_value());
  EXPECT_EQ(machine->pass()->id.kind, PassKind::evaluate);
  const Action grant = last(ActionKind::grant);
  happen(LeaseFinished{grant.session, grant.lease, 5, 5, 0, 0});
  EXPECT_FALSE(last(ActionKind::hold).urgent);
  EXPECT_EQ(last(ActionKind::hold).version, 2U);
  release();
  EXPECT_EQ(machine->pass()->id.kind, PassKind::train);
}

TEST_F(HoldsTest, TheEndOfTheRunIsHeldToo) {
  hold();
  for (int epoch = 0; epoch < 2; ++epoch) {
    release();
    by_itself(4);
    ended();
  }
  EXPECT_EQ(machine->version(), 12U);
  EXPECT_TRUE(machine->held());
  EXPECT_FALSE(machine->finished());
  release();
  EXPECT_TRUE(machine->finished());
}

TEST_F(HoldsTest, StoppingReleasesIt) {
  hold();
  happen(StopAsked{});
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 4U);
}

TEST_F(HoldsTest, OthersJoinMeanwhileAndAreCalibrated) {
  pace.to_calibrate = 4;
  hold();
  join(2, false);
  const Action trial = last(ActionKind::calibrate);
  EXPECT_EQ(trial.session, 2U);
  pace.to_calibrate = 0;
  happen(Calibrated{.session = 2, .lease = trial.lease});
  EXPECT_EQ(machine->members().find(2)->state, MemberState::member);
  EXPECT_FALSE(machine->pass().has_value());
  actions.clear();
  now += seconds(1);
  tick();
  EXPECT_EQ(count(ActionKind::heartbeat), 2U);
  release();
  ASSERT_TRUE(machine->pass().has_value());
  EXPECT_EQ(count(ActionKind::open_pass), 2U);
}

TEST_F(HoldsTest, AWorkerOfThisProcessIsMeasuredOnlyOnceItIsReleased) {
  pace.to_calibrate = 4;
  hold();
  actions.clear();
  join(2, true);
  EXPECT_EQ(count(ActionKind::calibrate), 0U);
  EXPECT_EQ(machine->members().find(2)->state, MemberState::calibrating);
  release();
  EXPECT_EQ(last(ActionKind::calibrate).session, 2U);
}

TEST_F(HoldsTest, WhereAWorkerOfThisProcessIsBeingMeasuredThatEndsFirst) {
  make();
  pace.verdict = {.pays = false, .with = seconds(2), .without = seconds(1)};
  join(2, true);
  now += seconds(6);
  tick();
  const Action trial = last(ActionKind::calibrate);
  by_itself(2);
  ended();
  EXPECT_FALSE(machine->held());
  happen(Calibrated{.session = 2, .lease = trial.lease});
  EXPECT_TRUE(machine->held());
}

TEST_F(HoldsTest, AParkedWorkerOfThisProcessIsNotMeasuredMeanwhile) {
  make();
  pace.verdict = {.pays = false, .with = seconds(2), .without = seconds(1)};
  join(2, true);
  EXPECT_EQ(machine->members().find(2)->state, MemberState::parked);
  by_itself(2);
  ended();
  ASSERT_TRUE(machine->held());
  actions.clear();
  now += seconds(6);
  tick();
  EXPECT_EQ(count(ActionKind::calibrate), 0U);
  release();
  tick();
  EXPECT_EQ(last(ActionKind::calibrate).session, 2U);
}

TEST_F(HoldsTest, NobodyEvaluatesBesideTheTraining) {
  evaluate_beside();
  EXPECT_EQ(count(ActionKind::evaluate_aside), 0U);
  EXPECT_EQ(machine->pass()->id.kind, PassKind::evaluate);
}

TEST_F(HoldsTest, ARunThatGoesOnIsHeldWhereNobodyReleasedIt) {
  config.first_version = 8;
  config.hold_owed = true;
  start();
  EXPECT_FALSE(machine->held()) << "its device may still be trying the model";
  join(1, true);
  EXPECT_TRUE(machine->held());
  release();
  EXPECT_EQ(machine->pass()->id.number, 8U);
}

TEST_F(HoldsTest, ARunThatGoesOnBetweenMarksIsNotHeld) {
  config.first_version = 7;
  config.hold_owed = true;
  start();
  join(1, true);
  EXPECT_TRUE(machine->pass().has_value());
  by_lease();
  EXPECT_TRUE(machine->held());
}

TEST_F(HoldsTest, AReleaseOfAnotherVersionIsNone) {
  hold();
  happen(Released{3});
  EXPECT_TRUE(machine->held());
}

}  // namespace
}  // namespace motley::cluster
