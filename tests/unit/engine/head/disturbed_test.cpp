// Lost, late and dishonest contributions. After each the weights are those of one undisturbed machine.

#include "disturbed.h"

namespace motley::engine {
namespace {

TEST_F(CoordinatorDisturbed, ALeaseNotBegunIsGrantedAgainInTheSameStep) {
  two();
  work(*b);
  lose(*a);
  ASSERT_EQ(b->grants.size(), 1u);
  EXPECT_EQ(b->grants[0].first, 0u);
  EXPECT_EQ(b->grants[0].count, 8u);
  EXPECT_EQ(b->grants[0].version, 0u);
  run_exact(4);
  EXPECT_EQ(events_of("w1"), (std::vector{Membership::joined, Membership::lost}));
}

TEST_F(CoordinatorDisturbed, ChunksDeliveredBeforeTheLossStay) {
  two();
  const wire::Grant lost = begun(*a);
  push(*a, lost, 0);
  push(*a, lost, 1);
  work(*b);
  EXPECT_EQ(b->weights[1].size(), 2u) << "two chunks are summed already";
  lose(*a);
  const wire::Grant again = take(*b);
  EXPECT_EQ(again.first, lost.first);
  EXPECT_EQ(again.count, lost.count);
  compute(*b, again);
  EXPECT_EQ(output.steps.size(), 1u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, ALostRangeIsDividedAmongTheOthersInTiles) {
  options.grain = 2;
  make_with({2, 1, 1});
  Peer& lost = join(1);
  Peer& second = join(2);
  Peer& third = join(3);
  const wire::Grant half = begun(lost);
  push(lost, half, 3);
  lose(lost);
  ASSERT_EQ(second.grants.size(), 2u);
  ASSERT_EQ(third.grants.size(), 2u);
  EXPECT_EQ(second.grants[1].first, 0u);
  EXPECT_EQ(second.grants[1].count, 4u);
  EXPECT_EQ(third.grants[1].first, 4u);
  EXPECT_EQ(third.grants[1].count, 4u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, TheReplacementMayBeLostToo) {
  two();
  Peer& c = join(3);
  Peer& d = join(4);
  const wire::Grant first = begun(*a);
  push(*a, first, 0);
  lose(*a);
  for (int round = 0; round < 2; ++round) {
    Peer& next = round == 0 ? *b : c;
    while (!next.grants.empty()) {
      const wire::Grant grant = begun(next);
      push(next, grant, 1);
    }
    lose(next);
  }
  EXPECT_FALSE(d.grants.empty());
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AStepWithoutWorkersWaitsForOne) {
  two();
  work(*a);
  lose(*a);
  lose(*b);
  Peer& c = join(3);
  EXPECT_EQ(positions(c), 8u) << "what the first one delivered stays";
  EXPECT_EQ(c.all<wire::PassOpened>().size(), 1u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AJoinerTakesNoPartInAStepThatNeedsNobody) {
  two();
  Peer& c = join(3);
  EXPECT_TRUE(c.grants.empty());
  work(*a);
  work(*b);
  EXPECT_FALSE(c.grants.empty());
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AJoinerGetsWhatOfTheNextVersionIsMadeAlready) {
  two();
  const wire::Grant grant = begun(*a);
  push(*a, grant, 0);
  work(*b);
  EXPECT_EQ(b->weights[1].size(), 1u);
  Peer& c = join(3);
  EXPECT_EQ(c.weights[0].size(), layout.chunks().size());
  EXPECT_EQ(c.weights[1].size(), 1u);
  for (ChunkId chunk = 1; chunk < layout.chunks().size(); ++chunk) push(*a, grant, chunk);
  EXPECT_EQ(c.weights[1].size(), layout.chunks().size());
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AJoinerOvertakenBySeveralStepsGetsTheNewestWhole) {
  two();
  Peer& c = open(3);
  ready(c);
  for (int step = 0; step < 2; ++step) {
    work(*a);
    work(*b);
  }
  EXPECT_EQ(c.weights.size(), 1u);
  synced(c, 0);
  EXPECT_EQ(c.weights[2].size(), layout.chunks().size());
  EXPECT_EQ(c.all<wire::PassOpened>().back().version, 2u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AContributionCutShortLeavesTheRestToOthers) {
  two();
  wire::Grant grant = take(*a);
  grant.count = 5;
  begin(*a, grant);
  EXPECT_EQ(positions(*a) + positions(*b), 8u + 3u);
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(*a, grant, chunk);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, ALostEvaluationLeaseIsGrantedAgain) {
  options.test_samples = 10;
  options.steps = 1;
  two();
  work(*a);
  work(*b);
  EXPECT_EQ(positions(*a) + positions(*b), 10u);
  lose(*a);
  run();
  ASSERT_EQ(output.evaluations.size(), 1u);
  EXPECT_EQ(output.evaluations[0].weight, 10);
  EXPECT_EQ(output.evaluations[0].loss_sum, loss_of(0, 10));
}

// --- late ---

TEST_F(CoordinatorDisturbed, AnOverdueLeaseGoesToAnotherAndTheFirstDeliveryWins) {
  two();
  work(*b);
  const wire::Grant slow = take(*a);
  pass_time(options.timeouts.lease_unknown + ms(100), {a, b});
  ASSERT_EQ(b->grants.size(), 1u) << "somebody else computes it too";
  begin(*a, slow);
  push(*a, slow, 0);
  work(*b);
  EXPECT_EQ(output.steps.size(), 1u);
  for (ChunkId chunk = 1; chunk < layout.chunks().size(); ++chunk) push(*a, slow, chunk);
  EXPECT_EQ(a->all<wire::Taken>().size(), 1u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, WhenTheOverdueOneIsFirstTheOtherIsCancelled) {
  two();
  work(*b);
  pass_time(options.timeouts.lease_unknown + ms(100), {a, b});
  ASSERT_EQ(b->grants.size(), 1u);
  const wire::Grant spare = take(*b);
  work(*a);
  EXPECT_EQ(output.steps.size(), 1u);
  ASSERT_EQ(b->all<wire::Cancel>().size(), 1u);
  EXPECT_EQ(b->all<wire::Cancel>()[0].lease, spare.lease);
  compute(*b, spare);  // too late, dropped
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, HalfASpareDeliveryDoesNotBlockTheStep) {
  two();
  Peer& c = join(3);
  const wire::Grant slow = take(*a);
  work(*b);
  pass_time(options.timeouts.lease_unknown + ms(100), {a, b, &c});
  ASSERT_EQ(b->grants.size(), 1u);
  ASSERT_EQ(c.grants.size(), 1u);
  const wire::Grant left = take(*b);
  begin(*a, slow);
  begin(*b, left);
  push(*b, left, 0);  // half of the chunk …
  push(*a, slow, 0);  // … so the whole of it is refused
  lose(c);            // and the other half has nobody
  for (ChunkId chunk = 1; chunk < layout.chunks().size(); ++chunk) push(*b, left, chunk);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, SilenceLosesAWorker) {
  two();
  pass_time(ms(1700), {b});
  EXPECT_EQ(coordinator->workers(), 2u);
  pass_time(ms(200), {b});
  EXPECT_EQ(coordinator->workers(), 1u);
  EXPECT_EQ(output.closed.at(1).code, "lost");
  EXPECT_EQ(positions(*b), 16u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AfterAPauseOfTheCoordinatorNobodyIsLost) {
  two();
  coordinator->tick(now);
  now += std::chrono::seconds(30);
  coordinator->tick(now);
  EXPECT_EQ(coordinator->workers(), 2u);
  pass_time(ms(1900), {b});
  EXPECT_EQ(coordinator->workers(), 1u);
}

TEST_F(CoordinatorDisturbed, AWorkerComesBackUnderItsNumber) {
  two();
  lose(*a);
  join(5, "w1");
  EXPECT_EQ(events_of("w1"), (std::vector{Membership::joined, Membership::lost, Membership::readmitted}));
  EXPECT_EQ(output.changes.back().worker, 1u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, ANewConnectionReplacesOneThatFellSilent) {
  two();
  pass_time(ms(1200), {b});
  join(5, "w1");
  EXPECT_EQ(output.closed.at(1).code, "lost");
  EXPECT_EQ(coordinator->workers(), 2u);
}

TEST_F(CoordinatorDisturbed, TwoWorkersOfOneNameBothWork) {
  two();
  join(5, "w1");
  EXPECT_EQ(coordinator->workers(), 3u);
  EXPECT_EQ(output.changes.back().name, "w1 (2)");
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, FramesOfAnOldSessionAreDropped) {
  two();
  const Peer old = *a;
  lose(*a);
  Peer& back = join(5, "w1");
  Peer forged = back;
  forged.fence = old.fence;
  ASSERT_FALSE(b->grants.empty());
  say(forged, wire::Yield{});
  EXPECT_EQ(coordinator->workers(), 2u);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AWorkerThatAsksAgainForTheWeightsIsAJoiner) {
  two();
  work(*b);
  a->weights.clear();
  say(*a, wire::Refresh{});
  a->grants.clear();
  EXPECT_EQ(a->weights[0].size(), layout.chunks().size());
  EXPECT_EQ(positions(*b), 8u);
  synced(*a);
  run_exact(4);
}

// --- leaving ---

TEST_F(CoordinatorDisturbed, YieldFinishesWhatIsBegun) {
  two();
  const wire::Grant grant = begun(*a);
  say(*a, wire::Yield{});
  EXPECT_EQ(coordinator->workers(), 2u);
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(*a, grant, chunk);
  EXPECT_EQ(output.closed.at(1).code, "leave");
  EXPECT_EQ(events_of("w1").back(), Membership::left);
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, StopWithTheLastWorkerLeavingStillClosesTheStep) {
  make();
  Peer& only = join(1);
  coordinator->stop(now);
  const wire::Grant grant = begun(only);
  say(only, wire::Yield{});
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(only, grant, chunk);
  EXPECT_EQ(output.steps.size(), 1u);
  EXPECT_EQ(output.times_finished, 1);
  expect_exact(1);
}

TEST_F(CoordinatorDisturbed, LeavingAtOnceIsNoLoss) {
  two();
  say(*a, wire::Bye{"leave", {}, {}, {}});
  a->grants.clear();
  EXPECT_EQ(events_of("w1").back(), Membership::left);
  run_exact(4);
}

}  // namespace
}  // namespace motley::engine
