#include <gtest/gtest.h>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

using std::chrono::seconds;

TEST_F(SoloTest, TheStepsUpToTheNextEvaluationAreDelegatedToTheOnlyWorker) {
  config.test_samples = 5;
  config.evaluate_every = 7;
  make();
  EXPECT_EQ(last(ActionKind::delegate).range, (Interval{2, 5}));
  EXPECT_EQ(last(ActionKind::delegate).reason.code, ReasonCode::alone);
  EXPECT_FALSE(machine->pass().has_value());
  by_itself(5);
  EXPECT_EQ(machine->version(), 7U);
  ended();
  EXPECT_EQ(last(ActionKind::send_weights).session, 1U);
  ASSERT_TRUE(machine->pass().has_value());
  EXPECT_EQ(machine->pass()->id, (PassId{.kind = PassKind::evaluate, .number = 7}));
  const Action grant = last(ActionKind::grant);
  happen(LeaseFinished{grant.session, grant.lease, 5, 5, 0, 0});
  EXPECT_EQ(last(ActionKind::delegate).range, (Interval{7, 5}));
}

TEST_F(SoloTest, TheRunEndsWithTheLastDelegatedStep) {
  make();
  by_itself(10);
  ended();
  EXPECT_TRUE(machine->finished());
}

TEST_F(SoloTest, NothingIsDelegatedToAWorkerOfAnotherProcess) {
  make(false);
  EXPECT_EQ(count(ActionKind::delegate), 0U);
  EXPECT_TRUE(machine->pass().has_value());
}

TEST_F(SoloTest, TheOthersWaitUntilItIsKnownWhatOneDoesAlone) {
  make();
  join(2, false);
  ended();
  now += seconds(1);
  performance.comparison = {.pays = false};
  by_lease();
  EXPECT_EQ(last(ActionKind::park).session, 2U);
  EXPECT_EQ(last(ActionKind::park).reason, (Reason{.code = ReasonCode::compared, .worker = 1}));
  EXPECT_EQ(delegated().worker, 1U);
  actions.clear();
  now += seconds(7);
  tick();
  EXPECT_EQ(count(ActionKind::take_in), 0U) << "eight passes of a second are not over";
  now += seconds(1);
  tick();
  EXPECT_EQ(count(ActionKind::calibrate), 0U);
  EXPECT_EQ(last(ActionKind::take_in).session, 2U);
  EXPECT_EQ(last(ActionKind::cut).session, 1U);
}

TEST_F(SoloTest, WhatIsMadeFasterAloneStaysAlone) {
  make();
  join(2, false);
  join(3, false);
  ended();
  now += seconds(1);
  performance.comparison = {.pays = false};
  by_lease();
  actions.clear();
  performance.resolution = {.pays = false, .with = seconds(2), .without = seconds(1)};
  now += seconds(8);
  tick();
  EXPECT_EQ(count(ActionKind::take_in), 1U) << "one of the others may help";
  EXPECT_EQ(count(ActionKind::park), 1U);
  EXPECT_EQ(last(ActionKind::park).reason,
            (Reason{ReasonCode::does_not_pay, last(ActionKind::park).worker, 2000, 1000}));
  EXPECT_NE(last(ActionKind::park).session, last(ActionKind::take_in).session);
}

TEST_F(SoloTest, WhoWasMeasuredToMakeStepsLongerIsParkedAndTriedAgainLater) {
  make();
  join(2, false);
  ended();
  performance.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  EXPECT_EQ(last(ActionKind::park).reason, (Reason{ReasonCode::does_not_pay, 2, 2000, 1000}));
  EXPECT_EQ(delegated().worker, 1U);
  actions.clear();
  now += seconds(195);
  calibrate();
  EXPECT_EQ(count(ActionKind::take_in), 0U);
  now += seconds(5);
  calibrate();
  EXPECT_EQ(last(ActionKind::take_in).session, 2U) << "after 200 steps";
}

TEST_F(SoloTest, WhoBecameFasterIsTriedAgainAtOnce) {
  make();
  join(2, false);
  ended();
  performance.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  performance.verdict.faster = true;
  now += seconds(5);
  calibrate();
  EXPECT_EQ(last(ActionKind::take_in).session, 2U);
}

TEST_F(SoloTest, OfSeveralWhoDoNotHelpOneIsParkedAtATime) {
  make();
  join(2, false);
  join(3, false);
  ended();
  performance.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  EXPECT_EQ(count(ActionKind::park), 1U);
  EXPECT_TRUE(machine->pass().has_value());
  by_lease();
  EXPECT_EQ(count(ActionKind::park), 2U);
  EXPECT_EQ(delegated().worker, 1U);
}

TEST_F(SoloTest, WithTwoDevicesOfTheHeadNobodyIsAlone) {
  make();
  join(2, false);
  join(3, true);
  ended();
  performance.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  EXPECT_EQ(count(ActionKind::park), 0U);
}

TEST_F(SoloTest, AWorkerThatPaysEndsTheDelegationAtAStep) {
  make();
  by_itself(1);
  join(2, false);
  EXPECT_EQ(last(ActionKind::cut).reason, (Reason{.code = ReasonCode::pays, .worker = 2}));
  EXPECT_EQ(count(ActionKind::cut), 1U);
  by_itself(1);
  EXPECT_EQ(machine->version(), 4U);
  ended();
  // Both are behind: the one made its steps elsewhere, the other joined before them.
  EXPECT_EQ(count(ActionKind::send_weights), 2U);
  EXPECT_EQ(count(ActionKind::open_pass), 2U);
  EXPECT_EQ(machine->pass()->id.number, 4U);
}

TEST_F(SoloTest, AWorkerThatDoesNotPayIsParkedDuringTheDelegation) {
  make();
  performance.verdict = {.pays = false, .with = seconds(2), .without = seconds(1)};
  join(2, false);
  EXPECT_EQ(count(ActionKind::park), 1U);
  EXPECT_EQ(count(ActionKind::cut), 0U);
  by_itself(1);
  happen(SessionEnded{1, false});
  EXPECT_FALSE(machine->delegation().has_value());
  EXPECT_EQ(last(ActionKind::grant).session, 2U);
  EXPECT_EQ(machine->pass()->id.number, 3U);
}

TEST_F(SoloTest, AParkedWorkerEvaluatesDuringDelegations) {
  evaluate_in_background();
  EXPECT_EQ(last(ActionKind::evaluate_in_background).session, 2U);
  EXPECT_EQ(last(ActionKind::evaluate_in_background).version, 7U);
  EXPECT_EQ(last(ActionKind::delegate).range, (Interval{7, 5}));
  happen(BackgroundEvaluated{2, machine->background()->lease, true});
  EXPECT_EQ(count(ActionKind::cut), 0U);
}

TEST_F(SoloTest, WhatWasNotEvaluatedInTheBackgroundEndsTheDelegation) {
  evaluate_in_background();
  by_itself(1);
  happen(BackgroundEvaluated{2, machine->background()->lease, false});
  EXPECT_EQ(last(ActionKind::cut).reason.code, ReasonCode::evaluation);
  by_itself(1);
  ended();
  EXPECT_EQ(machine->pass()->id, (PassId{.kind = PassKind::evaluate, .number = 9}));
}

TEST_F(SoloTest, StoppingEndsTheDelegationAndThenTheRun) {
  make();
  happen(StopAsked{});
  EXPECT_EQ(last(ActionKind::cut).reason.code, ReasonCode::stopped);
  by_itself(1);
  EXPECT_FALSE(machine->finished());
  ended();
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 3U);
}

TEST_F(SoloTest, AWorkerThatYieldsLeavesWhenTheDelegationHasEnded) {
  make();
  happen(WorkerYields{1});
  EXPECT_EQ(count(ActionKind::cut), 1U);
  EXPECT_EQ(count(ActionKind::close_session), 0U);
  ended();
  EXPECT_EQ(count(ActionKind::close_session), 1U);
}

TEST_F(SoloTest, AfterAFailureEverythingGoesByLease) {
  make();
  by_itself(1);
  ended(true);
  EXPECT_EQ(machine->pass()->id.number, 3U);
  by_lease();
  EXPECT_EQ(machine->pass()->id.number, 4U);
  EXPECT_EQ(count(ActionKind::delegate), 0U);
}

TEST_F(SoloTest, AStepThatTakesTooLongIsGrantedByLease) {
  make();
  by_itself(1);
  for (; now < seconds(11); now += std::chrono::milliseconds(500)) {
    machine->heard(1, now);
    happen(Ticked{});
  }
  EXPECT_TRUE(machine->delegation().has_value());
  machine->heard(1, now);
  happen(Ticked{});
  EXPECT_FALSE(machine->delegation().has_value());
  EXPECT_EQ(last(ActionKind::cut).reason.code, ReasonCode::overdue);
  EXPECT_EQ(machine->pass()->id.number, 3U);
  // What comes of it after all counts no more.
  happen(DelegatedStep{1, last(ActionKind::delegate).lease});
  EXPECT_EQ(machine->version(), 3U);
}

}  // namespace
}  // namespace motley::cluster
