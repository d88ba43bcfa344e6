#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rounds_fixture.h"

namespace motley::cluster {
namespace {

using namespace std::chrono_literals;

class RoundsTest : public RoundsMachineTest {};

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
  pass(performance.deadline(PassKind::train, 2, late.range.count) + std::chrono::seconds(1));
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_FALSE(of(ActionKind::cancel, 2).empty());
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
  MachineTest::start();
  join(1);
  const Action late = grant(1);
  ASSERT_EQ(late.range.count, 32U);
  performance.verdict = {.pays = false, .with = 2s, .without = 1s};
  join(2);
  ASSERT_EQ(machine->members().count(MemberState::parked), 1U);
  pass(performance.deadline(PassKind::train, 1, 32) + 1s);
  EXPECT_EQ(machine->members().count(MemberState::parked), 0U);
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
    for (const SessionId session : {1U, 2U}) {
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
  MachineTest::start();
  for (SessionId session = 1; session <= 130; ++session) join(session);
  for (SessionId session = 1; session <= 130; session += 2) push(grant(session));
  for (SessionId session = 2; session <= 130; ++session) happen(SessionEnded{session, false});
  for (int leases = 0; leases < 100 && !machine->finished(); ++leases) {
    const Action lease = grant(1);
    const auto open = std::ranges::count_if(machine->leases(), [](const Lease& one) { return one.live(); });
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

TEST_F(RoundsTest, WhoIsFarFromOneOtherAloneIsNotStruck) {
  config.steps = 20;
  start();
  while (!machine->finished()) {
    push(grant(1));
    push(grant(2), 0);
  }
  EXPECT_EQ(strikes(1) + strikes(2), 0);
}

TEST_F(RoundsTest, WhoseDeviceWasNotComparedYetHasNoShare) {
  config.min_workers = 1;
  config.verify.probes = true;
  start();
  push(grant(1));
  ASSERT_EQ(machine->version(), 1U);
  EXPECT_EQ(grant(1).range.count, 32U);
  EXPECT_TRUE(of(ActionKind::grant, 2).empty());
  for (const SessionId session : {1U, 2U}) {
    const auto probes = of(ActionKind::probe, session);
    ASSERT_FALSE(probes.empty());
    happen(Probed{session, probes.back().lease, true});
  }
  happen(ProbesCompared{2, 1, ProbeVerdict::alike});
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
  happen(StopAsked{});
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(done, in);
}

TEST_F(RoundsTest, AStoppedRunDropsARoundThatNothingIsInOf) {
  start();
  happen(StopAsked{});
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(machine->version(), 0U);
}

}  // namespace
}  // namespace motley::cluster
