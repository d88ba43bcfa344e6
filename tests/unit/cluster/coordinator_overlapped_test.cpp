#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rounds_fixture.h"

namespace motley::cluster {
namespace {

using namespace std::chrono_literals;

/// Rounds that begin while the one before travels; eight of them, all of one epoch.
class OverlappedTest : public RoundsMachineTest {
 protected:
  OverlappedTest() {
    config.overlap = true;
    config.steps = 8;
    config.train_samples = 256;
  }
  std::size_t grants(SessionId session) const { return of(ActionKind::grant, session).size(); }
  std::size_t cancels(SessionId session) const { return of(ActionKind::cancel, session).size(); }
};

TEST_F(OverlappedTest, WhoHasBegunToSendHasItsSliceOfTheNextRound) {
  start();
  const Action first = grant(1), second = grant(2);
  EXPECT_EQ(first.overlapped, 0U);
  begin(first);
  const Action next = grant(1);
  EXPECT_EQ(next.version, 1U);
  EXPECT_EQ(next.pass.number, 1U);
  EXPECT_EQ(next.positions.order_first, 32U);
  EXPECT_EQ(next.overlapped, 2U) << "half of its steps";
  EXPECT_TRUE(next.first_of_pass);
  EXPECT_EQ(grants(2), 1U);
  for (const ChunkId chunk : {0U, 1U}) happen(ChunkArrived{1, first.lease, chunk, {0.01, 0}});
  push(second);
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(grants(1), 2U) << "it has it already";
  EXPECT_EQ(grant(1).range.count + grant(2).range.count, 32U);
  push(grant(1));
  push(grant(2));
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(done, 32U);
}

TEST_F(OverlappedTest, WhoIsAloneWaits) {
  config.min_workers = 1;
  MachineTest::start();
  RoundsMachineTest::join(1);
  begin(grant(1));
  EXPECT_EQ(grants(1), 1U);
}

TEST_F(OverlappedTest, NothingOverlapsTheLastRoundOrAnotherEpochOrAnEvaluation) {
  config.steps = 6;
  config.train_samples = 96;
  config.test_samples = 8;
  config.evaluate_every = 5;
  start();
  std::vector<bool> overlapped;
  for (std::uint64_t round = 0; round < 6; ++round) {
    const std::size_t before = grants(1);
    begin(grant(1));
    overlapped.push_back(grants(1) > before);
    const Action one = overlapped.back() ? of(ActionKind::grant, 1).end()[-2] : grant(1);
    for (const ChunkId chunk : {0U, 1U}) happen(ChunkArrived{1, one.lease, chunk, {0.01, 0}});
    push(grant(2));
    for (const SessionId session : {1U, 2U}) {
      const Action last = grant(session);
      if (last.pass.kind == PassKind::evaluate)
        happen(LeaseFinished{session, last.lease, last.range.count, static_cast<double>(last.range.count), 0, 0});
    }
  }
  EXPECT_EQ(machine->version(), 6U);
  EXPECT_EQ(overlapped, (std::vector<bool>{true, true, false, true, false, false}))
      << "not into another epoch, nor to the evaluation of version 5, nor after the last one";
}

TEST_F(OverlappedTest, WhoseResultIsRefusedBeginsTheNextRoundWithTheOthers) {
  start();
  const Action bad = grant(2);
  begin(bad);
  const Action overlapped = grant(2);
  ASSERT_EQ(overlapped.version, 1U);
  not_finite(bad);
  ASSERT_EQ(cancels(2), 1U);
  EXPECT_EQ(of(ActionKind::cancel, 2).back().lease, overlapped.lease);
  EXPECT_EQ(of(ActionKind::cancel, 2).back().pass.number, 1U);
  push(grant(1));
  EXPECT_EQ(machine->version(), 1U);
  const Action again = grant(2);
  EXPECT_NE(again.lease, overlapped.lease);
  EXPECT_EQ(again.overlapped, 0U);
  EXPECT_EQ(again.range, overlapped.range);
  push(grant(1));
  push(again);
  EXPECT_EQ(machine->version(), 2U);
}

TEST_F(OverlappedTest, WhatIsLostAfterTheNextRoundWasCutComesFirstInTheOneAfterIt) {
  start();
  const Action lost = grant(2);
  push(grant(1));
  happen(SessionEnded{2, false});
  EXPECT_EQ(machine->version(), 1U);
  const Action held = grant(1);
  EXPECT_EQ(machine->owed().size(), 1U);
  push(held);
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(done, held.range.count) << "its slice of that round is lost too";
  const Action all = grant(1);
  EXPECT_EQ(all.range.count, 64U);
  ASSERT_EQ(all.spans.size(), 3U);
  EXPECT_EQ(all.spans[0].count + all.spans[1].count, 32U);
  EXPECT_EQ(all.spans[1], (StepRange{0, lost.range.first, lost.range.count}));
}

TEST_F(OverlappedTest, WhoLeavesWithAnOverlappedLeaseIsLetGo) {
  start();
  push(grant(1));
  happen(WorkerYields{1});
  EXPECT_FALSE(of(ActionKind::close_session, 1).empty());
  push(grant(2));
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_TRUE(machine->owed().empty());
}

TEST_F(OverlappedTest, WhoFailsOverlappedStepsHasAStrikeAndTheSameSliceAgain) {
  start();
  push(grant(1));
  const Action overlapped = grant(1);
  EXPECT_TRUE(machine->is_overlapped(1, overlapped.lease));
  EXPECT_FALSE(machine->is_overlapped(2, overlapped.lease));
  happen(LeaseFailed{1, overlapped.lease});
  EXPECT_EQ(strikes(1), 1);
  EXPECT_FALSE(machine->is_overlapped(1, overlapped.lease));
  push(grant(2));
  EXPECT_NE(grant(1).lease, overlapped.lease);
  EXPECT_EQ(grant(1).range, overlapped.range);
}

TEST_F(OverlappedTest, ARunThatIsStoppedOwesTheOverlappedRound) {
  config.owed = {{0, 8, 4}};
  config.first_version = 1;
  config.global_batch = 32;
  start();
  const Action lost = grant(2);
  push(grant(1));
  happen(StopAsked{});
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(cancels(1), 1U);
  std::uint64_t owed = 0;
  for (const Owed& part : machine->owed()) owed += part.count;
  EXPECT_EQ(owed, lost.range.count);
}

TEST_F(OverlappedTest, NobodyWaitsBeyondTheDeadlineForWhoIsLateWithAnOverlappedRound) {
  start();
  push(grant(1));
  push(grant(2));
  push(grant(1));
  pass(performance.deadline(PassKind::train, 2, 32) + 1s);
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(cancels(2), 1U);
}

}  // namespace
}  // namespace motley::cluster
