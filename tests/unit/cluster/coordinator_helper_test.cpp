#include <gtest/gtest.h>

#include <limits>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

/// A device of the head (1) and helpers (2, 3): steps of 40 samples in one epoch, of which helpers may make ten.
class HelperMachineTest : public MachineTest {
 protected:
  static constexpr SessionId kOwn = 1, kHelper = 2;

  HelperMachineTest() {
    config.steps = 24;
    config.train_samples = 960;
    config.global_batch = 40;
    config.chunks = 2;
    config.helper_share = 0.25;
  }
  void start(std::initializer_list<SessionId> helpers = {kHelper}) {
    config.min_workers = 1 + helpers.size();
    MachineTest::start();
    join(kOwn, true);
    for (const SessionId helper : helpers) join(helper);
  }
  Action grant(SessionId session) const {
    const auto grants = of(ActionKind::grant, session);
    return grants.empty() ? Action{} : grants.back();
  }
  std::size_t grants(SessionId session) const { return of(ActionKind::grant, session).size(); }
  /// The head's device makes all that it has of the open step, and what is granted to it because of that.
  void own_part() { deliver(grant(kOwn)); }
  void closing() override {
    early = 0;
    for (const Lease& lease : machine->leases())
      if (lease.early && machine->coverage().accepted(lease.id, 0)) early += lease.range.count;
  }

  std::uint64_t early = 0;  // samples of the step that was closed last which helpers made
};

TEST_F(HelperMachineTest, AHelperHasASliceAtTheEndOfTheNextStepAtTheVersionOfThisOne) {
  start();
  EXPECT_EQ(grant(kOwn).range, (Interval{0, 40})) << "there was no step before";
  const Action ahead = grant(kHelper);
  EXPECT_EQ(ahead.version, 0U);
  EXPECT_EQ(ahead.pass.number, 1U);
  EXPECT_EQ(ahead.positions.order_first, 40U);
  EXPECT_EQ(ahead.range, (Interval{38, 2})) << "a quarter of what it may have, at first";
  EXPECT_TRUE(ahead.first_of_pass);
  own_part();
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(grant(kOwn).range, (Interval{0, 38}));
}

TEST_F(HelperMachineTest, WhatIsThereBeforeItsStepOpensCountsInIt) {
  start();
  deliver(grant(kHelper));
  EXPECT_EQ(machine->version(), 0U);
  EXPECT_EQ(machine->early().size(), 1U);
  own_part();
  EXPECT_EQ(count(ActionKind::taken), 2U) << "both, of which the helper's as its step opens";
  EXPECT_EQ(grant(kHelper).pass.number, 2U) << "it goes on at once";
  own_part();
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(early, 2U);
}

TEST_F(HelperMachineTest, WhatComesWhileItsStepIsOpenCountsToo) {
  start();
  const Action ahead = grant(kHelper);
  begin(ahead);
  happen(ChunkArrived{kHelper, ahead.lease, 1, {0.1, 0}});
  own_part();
  happen(ChunkArrived{kHelper, ahead.lease, 0, {0.1, 0}});
  EXPECT_EQ(grants(kHelper), 1U) << "the next step after the open one has its turn when that opens";
  own_part();
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(early, 2U);
}

TEST_F(HelperMachineTest, NobodyWaitsForWhatIsNotThere) {
  start();
  const Action ahead = grant(kHelper);
  begin(ahead);
  happen(ChunkArrived{kHelper, ahead.lease, 0, {0.1, 0}});  // half of it
  own_part();
  own_part();
  EXPECT_EQ(machine->version(), 1U);
  EXPECT_EQ(grant(kOwn).range, ahead.range) << "the others make it at once";
  EXPECT_EQ(last(ActionKind::taken).discarded.size(), 2U) << "none of it counts";
  happen(ChunkArrived{kHelper, ahead.lease, 1, {0.1, 0}});
  own_part();
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(early, 0U);
}

TEST_F(HelperMachineTest, AHelperThatIsLostLeavesItsPositionsToTheOthers) {
  start();
  happen(SessionEnded{kHelper, false});
  EXPECT_TRUE(machine->early().empty());
  own_part();
  EXPECT_EQ(grant(kOwn).range, (Interval{0, 40}));
}

TEST_F(HelperMachineTest, OneOfTwoThatIsLostLeavesAHole) {
  start({2, 3});
  ASSERT_EQ(machine->early().size(), 2U);
  const Interval first = grant(2).range, second = grant(3).range;
  EXPECT_EQ(second.end(), first.first) << "from the end on, one before the other";
  happen(SessionEnded{2, false});
  deliver(grant(3));
  own_part();
  const auto own = of(ActionKind::grant, kOwn);
  EXPECT_EQ(own[own.size() - 2].range, (Interval{0, second.first}));
  EXPECT_EQ(own.back().range, first);
  deliver(own[own.size() - 2]);
  deliver(own.back());
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(early, second.count);
}

TEST_F(HelperMachineTest, ItsSliceGrowsToWhatItMayHaveAndShrinksWhereItIsLate) {
  start();
  std::vector<std::uint64_t> slices;
  for (int step = 0; step < 4; ++step) {
    slices.push_back(grant(kHelper).range.count);
    deliver(grant(kHelper));
    own_part();
  }
  EXPECT_EQ(slices, (std::vector<std::uint64_t>{2, 4, 8, 10}));
  own_part();
  own_part();  // without it
  own_part();
  EXPECT_EQ(grant(kHelper).range.count, 5U);
}

TEST_F(HelperMachineTest, WhoIsLateAgainAndAgainRests) {
  start();
  for (int step = 0; step < 40 && count(ActionKind::park) == 0; ++step) own_part();
  ASSERT_EQ(count(ActionKind::park), 1U);
  EXPECT_EQ(last(ActionKind::park).reason.code, ReasonCode::in_vain);
  const std::size_t before = grants(kHelper);
  own_part();
  EXPECT_EQ(grants(kHelper), before);
}

TEST_F(HelperMachineTest, WhoWouldHoldUpExactStepsHelps) {
  pace.verdict = {.pays = false, .with = std::chrono::seconds(2), .without = std::chrono::seconds(1)};
  start();
  EXPECT_EQ(count(ActionKind::park), 0U);
  EXPECT_EQ(grants(kHelper), 1U);
}

TEST_F(HelperMachineTest, NotBeforeTheWarmUpIsOverNorPastAnEvaluationOrTheEnd) {
  config.helper_from = 3;
  config.steps = 7;
  config.test_samples = 8;
  config.evaluate_every = 5;
  start();
  std::vector<std::uint64_t> steps;
  while (machine->version() < config.steps) {
    if (!machine->early().empty()) {
      steps.push_back(grant(kHelper).pass.number);
      deliver(grant(kHelper));
    }
    const Action own = grant(kOwn);
    if (own.pass.kind == PassKind::train) {
      deliver(own);
    } else {
      EXPECT_EQ(own.range.count, 8U) << "helpers are not waited for";
      happen(LeaseFinished{kOwn, own.lease, 8, 8, 0, 0});
    }
  }
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{3, 4, 6}));
}

TEST_F(HelperMachineTest, WhatIsNotFiniteIsMadeByTheOthers) {
  start();
  const Action ahead = grant(kHelper);
  begin(ahead);
  for (const ChunkId chunk : {0U, 1U})
    happen(ChunkArrived{kHelper, ahead.lease, chunk, {.gradient = std::numeric_limits<double>::infinity()}});
  own_part();
  EXPECT_EQ(machine->version(), 1U);
  const auto own = of(ActionKind::grant, kOwn);
  EXPECT_EQ(own.back().range, ahead.range);
  deliver(own[own.size() - 2]);
  deliver(own.back());
  EXPECT_EQ(machine->version(), 2U);
  EXPECT_EQ(last(ActionKind::warn).reason.code, ReasonCode::strike);
}

TEST_F(HelperMachineTest, APartOfASliceIsOfNoUse) {
  start();
  const Action ahead = grant(kHelper);
  happen(LeaseBegun{kHelper, ahead.lease, {ahead.range.first, 1}, 1, 0});
  EXPECT_TRUE(machine->early().empty());
  own_part();
  EXPECT_EQ(grant(kOwn).range, (Interval{0, 40}));
}

TEST_F(HelperMachineTest, WhoLeavesIsLetGoWhenItsSliceIsGivenBack) {
  start();
  const Action ahead = grant(kHelper);
  happen(WorkerYields{kHelper});
  EXPECT_TRUE(of(ActionKind::close_session, kHelper).empty());
  happen(LeaseFinished{.session = kHelper, .lease = ahead.lease});
  EXPECT_EQ(of(ActionKind::close_session, kHelper).size(), 1U);
}

TEST_F(HelperMachineTest, WithoutADeviceOfTheHeadAllShareInSteps) {
  MachineTest::start();
  join(2);
  join(3);
  EXPECT_EQ(grant(2).pass.number, 0U);
  EXPECT_EQ(grant(2).range.count + grant(3).range.count, 40U);
  EXPECT_TRUE(machine->early().empty());
}

TEST_F(HelperMachineTest, AnotherProcessOfTheHeadsMachineSharesInSteps) {
  config.min_workers = 3;
  MachineTest::start();
  join(kOwn, true);
  join(3, false, true);
  join(kHelper);
  EXPECT_EQ(grant(3).pass.number, 0U);
  EXPECT_EQ(grant(kOwn).range.count + grant(3).range.count, 40U);
  EXPECT_EQ(grant(kHelper).pass.number, 1U);
  happen(SessionEnded{kOwn, false});
  EXPECT_EQ(grant(3).pass.number, 0U) << "alone it goes on";
  EXPECT_FALSE(machine->early().empty()) << "and is helped";
}

TEST_F(HelperMachineTest, TheEndOfTheRunEndsWhatIsUnderWay) {
  start();
  happen(StopAsked{});
  own_part();
  EXPECT_TRUE(machine->finished());
  EXPECT_EQ(of(ActionKind::cancel, kHelper).size(), 1U);
}

}  // namespace
}  // namespace motley::cluster
