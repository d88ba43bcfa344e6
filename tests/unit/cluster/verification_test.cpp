// A worker that all others were parked for computes alone: somebody of those looks now and then. One whose device may
// leave work undone is looked at in the first pass.

#include <gtest/gtest.h>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

class AloneTest : public SoloTest {
 protected:
  AloneTest() {
    config.steps = 200;
    config.solo_after = 0;
    config.min_workers = 2;
    config.verify = {.part = 1, .secret = 3, .after = 0};
    performance.verdict = {.pays = false, .with = std::chrono::seconds(2), .without = std::chrono::seconds(1)};
  }
  /// Worker 1 computes all, until worker 2 has been parked.
  void park_the_other(bool local_alone) {
    start();
    join(1, local_alone);
    performance.verdict.pays = true;
    join(2, !local_alone);
    performance.verdict.pays = false;
    for (int step = 0; step < 3; ++step) by_lease();
    ASSERT_EQ(machine->members().find(2)->state, MemberState::parked);
  }
  /// Steps by worker 1, until it is granted nothing; so many at the most.
  int until_looked_at(int most) {
    for (int step = 0; step < most; ++step) {
      if (last(ActionKind::grant).session == 2) return step;
      by_lease();
    }
    return most;
  }
};

TEST_F(AloneTest, AParkedWorkerLooksAtARemoteOne) {
  park_the_other(false);
  EXPECT_LT(until_looked_at(100), 20) << "one in two";
  const Action again = last(ActionKind::grant);
  EXPECT_EQ(again.reason.code, ReasonCode::verified);
  EXPECT_EQ(again.range, (Interval{0, 12})) << "all of it";
  EXPECT_EQ(machine->members().find(2)->state, MemberState::member);
  const std::uint64_t version = machine->version();
  by_lease();
  EXPECT_EQ(machine->version(), version + 1);
}

TEST_F(AloneTest, NobodyLooksAtTheHeadsOwnDevice) {
  park_the_other(true);
  EXPECT_EQ(until_looked_at(100), 100);
}

class WatchedTest : public MachineTest {
 protected:
  WatchedTest() {
    config.steps = 40;
    config.train_samples = 480;
    config.global_batch = 12;
    config.chunks = 1;
    config.min_workers = 2;
    config.verify = {.part = 0.005, .secret = 3};
  }
  /// The head's own device and worker 2.
  void begin_with(bool watched) {
    start();
    join(1, true);
    happen(SessionOpened{2, false});
    happen(WorkerReady{2, 2, 0, watched});
    happen(WorkerSynced{2, machine->version()});
  }
  /// Steps until something is computed twice; so many at the most.
  int until_looked_at(int most) {
    std::size_t seen = 0;
    for (int step = 0; step < most; ++step) {
      const std::vector<Action> grants = of(ActionKind::grant);
      for (; seen < grants.size(); ++seen) deliver(grants[seen]);
      if (count(ActionKind::grant) > seen && last(ActionKind::grant).reason.code == ReasonCode::verified) return step;
    }
    return most;
  }
};

TEST_F(WatchedTest, OneWhoseDeviceMayLeaveWorkUndoneIsLookedAtInTheFirstPass) {
  begin_with(true);
  EXPECT_EQ(until_looked_at(10), 0);
  const Action again = last(ActionKind::grant);
  EXPECT_EQ(again.session, 1U);
  EXPECT_EQ(again.range, of(ActionKind::grant, 2).back().range);
}

TEST_F(WatchedTest, OthersWhenTheirSpeedsAreKnown) {
  begin_with(false);
  EXPECT_EQ(until_looked_at(10), 10);
}

}  // namespace
}  // namespace motley::cluster
