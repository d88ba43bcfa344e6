#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "fake_pace.h"

namespace motley::cluster {
namespace {

using modes::Action, modes::ActionKind, modes::Actions, modes::Event, modes::Interval, modes::LeaseId;
using namespace std::chrono_literals;
using modes::ChunkArrived, modes::LeaseBegun, modes::LeaseFailed, modes::SessionEnded;

/// Two workers, rounds of 4 steps of 8 samples, two chunks.
class RoundsTest : public testing::Test {
 protected:
  RoundsTest() {
    config.steps = 3;
    config.train_samples = 96;
    config.global_batch = 32;
    config.local_steps = 4;
    config.local_batch = 8;
    config.chunks = 2;
    config.min_workers = 2;
  }
  void start() {
    machine.emplace(config, pace);
    happen(modes::Started{});
    for (const fleet::SessionId session : {1U, 2U}) join(session);
  }
  void join(fleet::SessionId session) {
    happen(modes::SessionOpened{session, false});
    happen(modes::WorkerReady{session, session});
    happen(modes::WorkerSynced{session, machine->version()});
    if (const Action* trial = newest(ActionKind::calibrate, session)) happen(modes::Calibrated{session, trial->lease});
  }
  void happen(const Event& event) {
    Actions made;
    machine->decide(event, now, made);
    actions.insert(actions.end(), made.begin(), made.end());
    for (const Action& action : made) {
      if (action.kind == ActionKind::reduce) happen(modes::ChunkReduced{action.chunk});
      if (action.kind == ActionKind::apply) happen(modes::ChunkApplied{action.chunk});
      if (action.kind == ActionKind::close_step) {
        done = machine->coverage().positions() - machine->coverage().missing({}).size();
        happen(modes::PassFinished{});
      }
    }
  }
  const Action* newest(ActionKind kind, fleet::SessionId session) const {
    for (auto action = actions.rbegin(); action != actions.rend(); ++action)
      if (action->kind == kind && action->session == session) return &*action;
    return nullptr;
  }
  Action grant(fleet::SessionId session) const {
    const Action* found = newest(ActionKind::grant, session);
    return found == nullptr ? Action{} : *found;
  }
  void begin(const Action& of) {
    happen(LeaseBegun{of.session, of.lease, of.range, static_cast<double>(of.range.count), 1});
  }
  void push(const Action& of, double largest = 0.01) {
    begin(of);
    for (ChunkId chunk = 0; chunk < config.chunks; ++chunk)
      happen(ChunkArrived{of.session, of.lease, chunk, {largest, 0}});
  }
  void not_finite(const Action& of) {
    happen(ChunkArrived{of.session, of.lease, 0, {.gradient = std::numeric_limits<double>::infinity()}});
  }
  std::ptrdiff_t strikes(fleet::WorkerId worker) const {
    return std::ranges::count_if(actions, [worker](const Action& action) {
      return action.reason.code == modes::ReasonCode::strike && action.reason.worker == worker;
    });
  }
  void pass(Duration time) {
    constexpr auto kTick = std::chrono::milliseconds(500);
    for (const Time end = now + time; now < end;) {
      now += kTick;
      for (const fleet::SessionId session : {1U, 2U}) machine->heard(session, now);
      happen(modes::Ticked{});
    }
  }

  modes::RunConfig config;
  FakePace pace;
  std::optional<CoordinatorMachine> machine;
  Actions actions;
  Time now{};
  std::uint64_t done = 0;  // positions of the round that was closed last
};

TEST_F(RoundsTest, EachHasASliceOfAllStepsAndTheRoundClosesWhenBothAreIn) {
  start();
  EXPECT_EQ(grant(1).local_steps, 4U);
  EXPECT_EQ(grant(1).range.count + grant(2).range.count, 32U);
  EXPECT_EQ(grant(1).range.count % 4, 0U);
  push(grant(1));
  EXPECT_EQ(machine->version(), 0U);
  push(grant(2));
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(done, 32U);
  EXPECT_TRUE(machine->owed().empty());
}

TEST_F(RoundsTest, WhatALostWorkerHeldComesFirstInTheNextRound) {
  start();
  const Action lost = grant(2);
  begin(lost);
  happen(ChunkArrived{lost.session, lost.lease, 0});  // a part of it is nothing
  push(grant(1));
  happen(SessionEnded{2, false});
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(done, 32 - lost.range.count);
  const Action next = grant(1);
  EXPECT_EQ(next.range, (Interval{0, 32 + lost.range.count}));
  ASSERT_EQ(next.spans.size(), 2U);
  EXPECT_EQ(next.spans[0], (StepRange{0, lost.range.first, lost.range.count}));
  EXPECT_EQ(next.spans[1], (StepRange{0, 32, 32}));
}

TEST_F(RoundsTest, NobodyWaitsBeyondTheDeadlineForWhoIsLate) {
  start();
  const Action late = grant(2);
  push(grant(1));
  pass(pace.deadline(PassKind::train, 2, late.range.count) + std::chrono::seconds(1));
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_NE(newest(ActionKind::cancel, 2), nullptr);
  push(late);  // of a round gone by
  EXPECT_EQ(machine->version(), 1U);
}

TEST_F(RoundsTest, WithoutAnythingThereIsNoStepToMake) {
  start();
  pass(std::chrono::minutes(2));
  EXPECT_EQ(machine->version(), 0U);
  push(grant(1));  // after the deadline: with that the round closes
  EXPECT_EQ(machine->version(), 1U);
}

TEST_F(RoundsTest, WhoIsParkedHelpsWhereTheOnlyOneIsLate) {
  config.min_workers = 1;
  machine.emplace(config, pace);
  happen(modes::Started{});
  join(1);
  const Action late = grant(1);
  ASSERT_EQ(late.range.count, 32U);
  pace.verdict = {.pays = false, .with = 2s, .without = 1s};
  join(2);
  ASSERT_EQ(machine->members().count(fleet::MemberState::parked), 1U);
  pass(pace.deadline(PassKind::train, 1, 32) + 1s);
  EXPECT_EQ(machine->members().count(fleet::MemberState::parked), 0U);
  EXPECT_EQ(grant(2).range, late.range);
  push(grant(2));
  EXPECT_EQ(machine->version(), 1U);
}

TEST_F(RoundsTest, AfterTheLastRoundTheRestIsDoneInIt) {
  config.steps = 1;
  start();
  push(grant(1));
  const Action failed = grant(2);
  happen(LeaseFailed{2, failed.lease});
  EXPECT_EQ(machine->version(), 0U);
  const Action rest = grant(1);
  EXPECT_EQ(rest.range, failed.range);
  EXPECT_FALSE(rest.first_of_pass);
  push(rest);
  EXPECT_EQ(done, 32U);
  EXPECT_TRUE(machine->finished());
}

TEST_F(RoundsTest, WhatIsOwedInTheEndIsSplitOverLeasesThatAWorkerTakes) {
  config.steps = 10;
  config.first_version = 9;
  for (std::uint64_t step = 0; step < 9; ++step) config.owed.push_back({step, 0, 32});
  start();
  for (int leases = 0; leases < 10 && !machine->finished(); ++leases) {
    for (const fleet::SessionId session : {1U, 2U}) {
      const Action lease = grant(session);
      EXPECT_LE(lease.range.count, 64U);
      std::uint64_t in_spans = 0;
      for (const StepRange& span : lease.spans) in_spans += span.count;
      EXPECT_EQ(in_spans, lease.range.count);
      push(lease);
    }
  }
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(done, 320U);
}

TEST_F(RoundsTest, OneWorkerHasOneLeaseAtATimeOfPiecesThatAreFree) {
  config.steps = 1;
  config.train_samples = 4160;
  config.global_batch = 4160;
  config.local_batch = 1040;
  config.min_workers = 130;
  machine.emplace(config, pace);
  happen(modes::Started{});
  for (fleet::SessionId session = 1; session <= 130; ++session) join(session);
  for (fleet::SessionId session = 1; session <= 130; session += 2) push(grant(session));
  for (fleet::SessionId session = 2; session <= 130; ++session) happen(SessionEnded{session, false});
  for (int leases = 0; leases < 100 && !machine->finished(); ++leases) {
    const Action lease = grant(1);
    const auto open = std::ranges::count_if(machine->leases(), [](const modes::Lease& one) { return one.live(); });
    EXPECT_EQ(open, 1);
    push(lease);
  }
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(done, 4160U);
}

TEST_F(RoundsTest, WhatIsNotFiniteDoesNotCountAndIsAStrikeWhereItDoesOfAnother) {
  start();
  const Action bad = grant(2);
  not_finite(bad);
  push(grant(1));
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(done, 32 - bad.range.count);
  EXPECT_EQ(strikes(2), 0) << "it may be the samples";
  ASSERT_EQ(grant(1).range.first, 0U) << "what was not finite goes to the other";
  push(grant(1));
  push(grant(2));
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(strikes(2), 1);
  EXPECT_EQ(strikes(1), 0);
}

TEST_F(RoundsTest, SamplesThatAreNotFiniteAnywhereEndTheRun) {
  start();
  not_finite(grant(1));
  push(grant(2));
  ASSERT_EQ(machine->version(), 1U);
  ASSERT_EQ(grant(2).range.first, 0U);
  not_finite(grant(2));
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(std::ranges::count(actions, ActionKind::diverged, &Action::kind), 1);
  EXPECT_EQ(strikes(1) + strikes(2), 0);
}

TEST_F(RoundsTest, WhatNobodyComesNearDoesNotCountAndIsAStrikeWhereAnotherComesToLess) {
  config.steps = 20;
  start();
  for (int round = 0; round < 8; ++round) {
    push(grant(1));
    push(grant(2));
  }
  ASSERT_EQ(machine->version(), 8U);
  const Action right = grant(1), wild = grant(2);
  push(wild, 1e20);
  push(right);
  EXPECT_EQ(machine->version(), 9U);
  EXPECT_EQ(done, right.range.count);
  EXPECT_EQ(strikes(2), 0);
  push(grant(1));
  push(grant(2));
  EXPECT_EQ(machine->version(), 10U);
  EXPECT_EQ(strikes(2), 1);
}

TEST_F(RoundsTest, WhoseDeviceWasNotComparedYetHasNoShare) {
  config.min_workers = 1;
  config.verify.probes = true;
  start();
  push(grant(1));
  ASSERT_EQ(machine->version(), 1U);
  EXPECT_EQ(grant(1).range.count, 32U);
  EXPECT_EQ(newest(ActionKind::grant, 2), nullptr);
  for (const fleet::SessionId session : {1U, 2U}) {
    const Action* probe = newest(ActionKind::probe, session);
    ASSERT_NE(probe, nullptr);
    happen(modes::Probed{session, probe->lease, true});
  }
  happen(modes::ProbesCompared{2, 1, modes::ProbeVerdict::alike});
  push(grant(1));
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_GT(grant(2).range.count, 0U);
}

TEST_F(RoundsTest, APartOfTheStepsIsHandedBack) {
  start();
  const Action part = grant(2);
  happen(LeaseBegun{2, part.lease, {part.range.first, part.range.count / 2}, 1, 1});
  push(grant(1));
  EXPECT_EQ(done, 32 - part.range.count);
}

TEST_F(RoundsTest, SamplesThatTwoFindUnlikelyCount) {
  config.steps = 20;
  start();
  for (int round = 0; round < 8; ++round) {
    push(grant(1));
    push(grant(2));
  }
  push(grant(2), 1e20);
  push(grant(1));
  ASSERT_EQ(grant(1).range.first, 0U);
  push(grant(1), 1e20);
  push(grant(2));
  EXPECT_EQ(machine->version(), 10U);
  EXPECT_EQ(strikes(1) + strikes(2), 0);
}

TEST_F(RoundsTest, WhoTakesLongerThanPredictedIsWaitedForWhereNobodyElseIsLeft) {
  config.steps = 1;
  start();
  push(grant(1));
  happen(SessionEnded{2, false});
  const Action rest = grant(1);
  ASSERT_GT(rest.range.count, 0U);
  pass(1h);
  EXPECT_EQ(grant(1).lease, rest.lease) << "it would begin anew for ever";
  push(rest);
  EXPECT_TRUE(machine->finished());
}

TEST_F(RoundsTest, AStoppedRunClosesTheRoundWithWhatIsIn) {
  start();
  const std::uint64_t in = grant(1).range.count;
  push(grant(1));
  happen(modes::StopAsked{});
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(done, in);
}

TEST_F(RoundsTest, AStoppedRunDropsARoundThatNothingIsInOf) {
  start();
  happen(modes::StopAsked{});
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 0U);
}

}  // namespace
}  // namespace motley::cluster
