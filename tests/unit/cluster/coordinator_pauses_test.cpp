#include <gtest/gtest.h>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

using std::chrono::seconds;

class PausesTest : public SoloTest {
 protected:
  PausesTest() { config.pauses = Pauses::eval_points; }  // 12 steps, 4 an epoch; steps alone from the third on
  void resume() { happen(Resumed{machine->version()}); }
  /// To the first eval point.
  void pause() {
    make();
    by_itself(2);
    ended();
  }
};

TEST_F(PausesTest, ADelegationEndsAtTheEvalPointAndAnotherBeginsWhenTheRunResumes) {
  make();
  EXPECT_EQ(last(ActionKind::delegate).range, (Interval{2, 2}));
  by_itself(2);
  EXPECT_FALSE(machine->paused()) << "the delegation has not ended";
  ended();
  EXPECT_TRUE(machine->paused());
  EXPECT_EQ(last(ActionKind::pause).version, 4U);
  EXPECT_FALSE(last(ActionKind::pause).urgent);
  EXPECT_EQ(count(ActionKind::delegate), 0U);
  resume();
  EXPECT_FALSE(machine->paused());
  EXPECT_EQ(last(ActionKind::delegate).range, (Interval{4, 4})) << "no passes by lease before it";
}

TEST_F(PausesTest, TheEvaluationComesBeforeThePause) {
  config.test_samples = 5;
  pause();
  EXPECT_FALSE(machine->paused());
  const Action grant = last(ActionKind::grant);
  happen(LeaseFinished{grant.session, grant.lease, 5, 5, 0, 0});
  EXPECT_TRUE(machine->paused());
  resume();
  EXPECT_TRUE(machine->delegation().has_value());
}

TEST_F(PausesTest, EveryStepIsPausedAndEvalPointsOnceMore) {
  config.pauses = Pauses::steps;
  config.test_samples = 5;
  config.evaluate_every = 2;
  start();
  join(1, true);
  by_lease();
  EXPECT_TRUE(last(ActionKind::pause).urgent);
  resume();
  by_lease();
  EXPECT_TRUE(last(ActionKind::pause).urgent);
  EXPECT_EQ(count(ActionKind::pause), 2U);
  EXPECT_EQ(count(ActionKind::delegate), 0U);
  resume();
  ASSERT_TRUE(machine->pass().has_value());
  EXPECT_EQ(machine->pass()->id.kind, PassKind::evaluate);
  const Action grant = last(ActionKind::grant);
  happen(LeaseFinished{grant.session, grant.lease, 5, 5, 0, 0});
  EXPECT_FALSE(last(ActionKind::pause).urgent);
  EXPECT_EQ(last(ActionKind::pause).version, 2U);
  resume();
  EXPECT_EQ(machine->pass()->id.kind, PassKind::train);
}

TEST_F(PausesTest, TheEndOfTheRunIsPausedToo) {
  pause();
  for (int epoch = 0; epoch < 2; ++epoch) {
    resume();
    by_itself(4);
    ended();
  }
  EXPECT_EQ(machine->version(), 12U);
  EXPECT_TRUE(machine->paused());
  EXPECT_FALSE(machine->finished());
  resume();
  EXPECT_TRUE(machine->finished());
}

TEST_F(PausesTest, StoppingResumesIt) {
  pause();
  happen(StopAsked{});
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 4U);
}

TEST_F(PausesTest, OthersJoinMeanwhileAndAreCalibrated) {
  performance.to_calibrate = 4;
  pause();
  join(2, false);
  const Action trial = last(ActionKind::calibrate);
  EXPECT_EQ(trial.session, 2U);
  performance.to_calibrate = 0;
  happen(Calibrated{.session = 2, .lease = trial.lease});
  EXPECT_EQ(machine->members().find(2)->state, MemberState::member);
  EXPECT_FALSE(machine->pass().has_value());
  actions.clear();
  now += seconds(1);
  tick();
  EXPECT_EQ(count(ActionKind::heartbeat), 2U);
  resume();
  ASSERT_TRUE(machine->pass().has_value());
  EXPECT_EQ(count(ActionKind::open_pass), 2U);
}

TEST_F(PausesTest, AWorkerOfThisProcessIsMeasuredOnlyOnceItResumes) {
  performance.to_calibrate = 4;
  pause();
  actions.clear();
  join(2, true);
  EXPECT_EQ(count(ActionKind::calibrate), 0U);
  EXPECT_EQ(machine->members().find(2)->state, MemberState::calibrating);
  resume();
  EXPECT_EQ(last(ActionKind::calibrate).session, 2U);
}

TEST_F(PausesTest, WhereAWorkerOfThisProcessIsBeingMeasuredThatEndsFirst) {
  make();
  performance.verdict = {.pays = false, .with = seconds(2), .without = seconds(1)};
  join(2, true);
  now += seconds(6);
  tick();
  const Action trial = last(ActionKind::calibrate);
  by_itself(2);
  ended();
  EXPECT_FALSE(machine->paused());
  happen(Calibrated{.session = 2, .lease = trial.lease});
  EXPECT_TRUE(machine->paused());
}

TEST_F(PausesTest, AParkedWorkerOfThisProcessIsNotMeasuredMeanwhile) {
  make();
  performance.verdict = {.pays = false, .with = seconds(2), .without = seconds(1)};
  join(2, true);
  EXPECT_EQ(machine->members().find(2)->state, MemberState::parked);
  by_itself(2);
  ended();
  ASSERT_TRUE(machine->paused());
  actions.clear();
  now += seconds(6);
  tick();
  EXPECT_EQ(count(ActionKind::calibrate), 0U);
  resume();
  tick();
  EXPECT_EQ(last(ActionKind::calibrate).session, 2U);
}

TEST_F(PausesTest, NobodyEvaluatesBesideTheTraining) {
  evaluate_in_background();
  EXPECT_EQ(count(ActionKind::evaluate_in_background), 0U);
  EXPECT_EQ(machine->pass()->id.kind, PassKind::evaluate);
}

TEST_F(PausesTest, ARunThatGoesOnIsPausedWhereNobodyResumedIt) {
  config.first_version = 8;
  config.pause_owed = true;
  start();
  EXPECT_FALSE(machine->paused()) << "its device may still be trying the model";
  join(1, true);
  EXPECT_TRUE(machine->paused());
  resume();
  EXPECT_EQ(machine->pass()->id.number, 8U);
}

TEST_F(PausesTest, ARunThatGoesOnBetweenEvalPointsIsNotPaused) {
  config.first_version = 7;
  config.pause_owed = true;
  start();
  join(1, true);
  EXPECT_TRUE(machine->pass().has_value());
  by_lease();
  EXPECT_TRUE(machine->paused());
}

TEST_F(PausesTest, AResumeOfAnotherVersionIsNone) {
  pause();
  happen(Resumed{3});
  EXPECT_TRUE(machine->paused());
}

}  // namespace
}  // namespace motley::cluster
