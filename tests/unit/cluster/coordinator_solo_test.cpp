#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cluster/coordinator_machine.h"

namespace motley::cluster {
namespace {

using std::chrono::seconds;

struct WholePace : Pace {
  Verdict verdict;
  void split(PassKind, std::uint64_t total, std::span<const WorkerId>, bool, std::span<std::uint64_t> counts) override {
    std::ranges::fill(counts, 0);
    counts[0] = total;
  }
  Duration allowance(PassKind, WorkerId, std::uint64_t) const override { return seconds(10); }
  std::uint64_t calibration(WorkerId) const override { return 0; }
  std::uint64_t trial(WorkerId) const override { return 4; }
  std::uint64_t unit(WorkerId) const override { return 0; }
  std::uint64_t shift(const Part&, const Part&) const override { return 0; }
  std::uint64_t relief(const Part&, WorkerId, Duration) const override { return 0; }
  Verdict judge(std::uint64_t, std::span<const WorkerId> members, WorkerId) override {
    return members.empty() ? Verdict{} : verdict;
  }
  Verdict comparison;
  Verdict compare(std::uint64_t, WorkerId) override { return comparison; }
  Verdict resolution;
  Verdict resolve(std::uint64_t, WorkerId) const override { return resolution; }
};

class SoloTest : public testing::Test {
 protected:
  SoloTest() {
    config.steps = 12;
    config.train_samples = 48;
    config.global_batch = 12;
    config.chunks = 1;
    config.solo_after = 2;
  }
  /// A worker of the same process and two steps by lease.
  void make(bool local = true) {
    machine.emplace(config, pace);
    happen(Started{});
    join(1, local);
    for (int step = 0; step < 2; ++step) by_lease();
  }
  void happen(const Event& event) {
    Actions made;
    machine->decide(event, now, made);
    actions.insert(actions.end(), made.begin(), made.end());
    for (const Action& action : made) {
      if (action.kind == ActionKind::reduce) happen(ChunkReduced{action.chunk});
      if (action.kind == ActionKind::apply) happen(ChunkApplied{action.chunk});
      if (action.kind == ActionKind::close_step && other_batch > 0)
        machine->change_batch(std::exchange(other_batch, 0), 1);
      if (action.kind == ActionKind::close_step || action.kind == ActionKind::close_evaluation) happen(PassFinished{});
    }
  }
  void join(SessionId session, bool local) {
    happen(SessionOpened{session, local});
    happen(WorkerReady{session, session});
    happen(WorkerSynced{session, machine->version()});
  }
  void by_lease() {
    const Action grant = last(ActionKind::grant);
    happen(LeaseBegun{grant.session, grant.lease, grant.range, 12, 0});
    happen(ChunkArrived{grant.session, grant.lease, 0, true});
  }
  void tick() {
    for (const SessionId session : {1U, 2U, 3U}) machine->heard(session, now);
    happen(Ticked{});
  }
  /// A parked worker is measured again.
  void calibrate() {
    tick();
    const Action trial = last(ActionKind::calibrate);
    happen(Calibrated{.session = trial.session, .lease = trial.lease});
  }
  void by_itself(int steps) {
    for (int i = 0; i < steps; ++i) happen(StretchStep{lent().session, lent().lease});
  }
  void ended(bool failed = false) {
    const CoordinatorMachine::OpenStretch stretch = lent();
    actions.clear();
    happen(StretchEnded{stretch.session, stretch.lease, failed});
  }
  /// Somebody who does not pay evaluates version 7, the end of a stretch, while the next one goes on.
  void evaluate_beside() {
    config.test_samples = 5;
    config.evaluate_every = 7;
    make();
    pace.verdict = {.pays = false, .with = seconds(2), .without = seconds(1)};
    join(2, false);
    by_itself(5);
    ended();
  }
  [[nodiscard]] const CoordinatorMachine::OpenStretch& lent() const { return machine->stretch().value(); }
  [[nodiscard]] std::size_t count(ActionKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(actions, kind, &Action::kind));
  }
  [[nodiscard]] Action last(ActionKind kind) const {
    const auto found = std::find_if(actions.rbegin(), actions.rend(), [&](const Action& a) { return a.kind == kind; });
    EXPECT_NE(found, actions.rend());
    return found == actions.rend() ? Action{} : *found;
  }

  MachineConfig config;
  WholePace pace;
  std::optional<CoordinatorMachine> machine;
  std::vector<Action> actions;
  std::uint64_t other_batch = 0;  // from the next pass by lease on
  Time now = seconds(1);
};

TEST_F(SoloTest, TheOnlyWorkerIsLentTheStepsUpToTheNextEvaluation) {
  config.test_samples = 5;
  config.evaluate_every = 7;
  make();
  EXPECT_EQ(last(ActionKind::lend).range, (Interval{2, 5}));
  EXPECT_EQ(last(ActionKind::lend).reason.code, ReasonCode::alone);
  EXPECT_FALSE(machine->pass().has_value());
  by_itself(5);
  EXPECT_EQ(machine->version(), 7U);
  ended();
  EXPECT_EQ(last(ActionKind::send_weights).session, 1U);
  ASSERT_TRUE(machine->pass().has_value());
  EXPECT_EQ(machine->pass()->id, (PassId{.kind = PassKind::evaluate, .number = 7}));
  const Action grant = last(ActionKind::grant);
  happen(LeaseFinished{grant.session, grant.lease, 5, 5, 0, 0});
  EXPECT_EQ(last(ActionKind::lend).range, (Interval{7, 5}));
}

TEST_F(SoloTest, TheRunEndsWithTheLastStepThatWasLent) {
  make();
  by_itself(10);
  ended();
  EXPECT_TRUE(machine->finished());
}

TEST_F(SoloTest, AWorkerOfAnotherProcessIsLentNothing) {
  make(false);
  EXPECT_EQ(count(ActionKind::lend), 0U);
  EXPECT_TRUE(machine->pass().has_value());
}

TEST_F(SoloTest, TheOthersWaitUntilItIsKnownWhatOneDoesAlone) {
  make();
  join(2, false);
  ended();
  now += seconds(1);
  pace.comparison = {.pays = false};
  by_lease();
  EXPECT_EQ(last(ActionKind::park).session, 2U);
  EXPECT_EQ(last(ActionKind::park).reason, (Reason{.code = ReasonCode::compared, .worker = 1}));
  EXPECT_EQ(lent().worker, 1U);
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
  pace.comparison = {.pays = false};
  by_lease();
  actions.clear();
  pace.resolution = {.pays = false, .with = seconds(2), .without = seconds(1)};
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
  pace.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  EXPECT_EQ(last(ActionKind::park).reason, (Reason{ReasonCode::does_not_pay, 2, 2000, 1000}));
  EXPECT_EQ(lent().worker, 1U);
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
  pace.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  pace.verdict.faster = true;
  now += seconds(5);
  calibrate();
  EXPECT_EQ(last(ActionKind::take_in).session, 2U);
}

TEST_F(SoloTest, OfSeveralWhoDoNotHelpOneIsParkedAtATime) {
  make();
  join(2, false);
  join(3, false);
  ended();
  pace.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  EXPECT_EQ(count(ActionKind::park), 1U);
  EXPECT_TRUE(machine->pass().has_value());
  by_lease();
  EXPECT_EQ(count(ActionKind::park), 2U);
  EXPECT_EQ(lent().worker, 1U);
}

TEST_F(SoloTest, WithTwoDevicesOfTheHeadNobodyIsAlone) {
  make();
  join(2, false);
  join(3, true);
  ended();
  pace.comparison = {.pays = false, .with = seconds(2), .without = seconds(1)};
  by_lease();
  EXPECT_EQ(count(ActionKind::park), 0U);
}

TEST_F(SoloTest, AWorkerThatPaysEndsTheStretchAtAStep) {
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

TEST_F(SoloTest, AWorkerThatDoesNotPayIsParkedBesideTheStretch) {
  make();
  pace.verdict = {.pays = false, .with = seconds(2), .without = seconds(1)};
  join(2, false);
  EXPECT_EQ(count(ActionKind::park), 1U);
  EXPECT_EQ(count(ActionKind::cut), 0U);
  by_itself(1);
  happen(SessionEnded{1, false});
  EXPECT_FALSE(machine->stretch().has_value());
  EXPECT_EQ(last(ActionKind::grant).session, 2U);
  EXPECT_EQ(machine->pass()->id.number, 3U);
}

TEST_F(SoloTest, AParkedWorkerEvaluatesBesideTheStretches) {
  evaluate_beside();
  EXPECT_EQ(last(ActionKind::evaluate_aside).session, 2U);
  EXPECT_EQ(last(ActionKind::evaluate_aside).version, 7U);
  EXPECT_EQ(last(ActionKind::lend).range, (Interval{7, 5}));
  happen(EvaluatedAside{2, machine->aside()->lease, true});
  EXPECT_EQ(count(ActionKind::cut), 0U);
}

TEST_F(SoloTest, WhatWasNotEvaluatedAsideEndsTheStretch) {
  evaluate_beside();
  by_itself(1);
  happen(EvaluatedAside{2, machine->aside()->lease, false});
  EXPECT_EQ(last(ActionKind::cut).reason.code, ReasonCode::evaluation);
  by_itself(1);
  ended();
  EXPECT_EQ(machine->pass()->id, (PassId{.kind = PassKind::evaluate, .number = 9}));
}

TEST_F(SoloTest, TheBatchChangesInAPassByLeaseAfterWhichStepsAreLentAgain) {
  config.test_samples = 5;
  make();
  EXPECT_EQ(lent().steps, (Interval{2, 2}));  // the epoch has 4
  happen(StretchStep{lent().session, lent().lease, true});
  EXPECT_EQ(last(ActionKind::cut).reason.code, ReasonCode::other_batch);
  ended();
  ASSERT_TRUE(machine->pass().has_value());
  EXPECT_EQ(machine->pass()->range, (PassRange{0, 36, 12}));
  by_lease();
  const Action evaluation = last(ActionKind::grant);
  other_batch = 24;
  happen(LeaseFinished{evaluation.session, evaluation.lease, 5, 5, 0, 0});
  EXPECT_EQ(lent().steps, (Interval{4, 4})) << "nothing changed yet";
  happen(StretchStep{lent().session, lent().lease, true});
  ended();
  by_lease();
  EXPECT_EQ(machine->batches().range(6), (PassRange{1, 24, 24}));
  EXPECT_EQ(lent().steps, (Interval{6, 1}));
}

TEST_F(SoloTest, StoppingEndsTheStretchAndThenTheRun) {
  make();
  happen(StopAsked{});
  EXPECT_EQ(last(ActionKind::cut).reason.code, ReasonCode::stopped);
  by_itself(1);
  EXPECT_FALSE(machine->finished());
  ended();
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 3U);
}

TEST_F(SoloTest, AWorkerThatYieldsLeavesWhenTheStretchHasEnded) {
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
  EXPECT_EQ(count(ActionKind::lend), 0U);
}

TEST_F(SoloTest, AStepThatTakesTooLongIsGrantedByLease) {
  make();
  by_itself(1);
  for (; now < seconds(11); now += std::chrono::milliseconds(500)) {
    machine->heard(1, now);
    happen(Ticked{});
  }
  EXPECT_TRUE(machine->stretch().has_value());
  machine->heard(1, now);
  happen(Ticked{});
  EXPECT_FALSE(machine->stretch().has_value());
  EXPECT_EQ(last(ActionKind::cut).reason.code, ReasonCode::overdue);
  EXPECT_EQ(machine->pass()->id.number, 3U);
  // What comes of it after all counts no more.
  happen(StretchStep{1, last(ActionKind::lend).lease});
  EXPECT_EQ(machine->version(), 3U);
}

}  // namespace
}  // namespace motley::cluster
