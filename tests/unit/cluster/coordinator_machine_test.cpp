#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string name_of(WorkerId worker) { return std::string("w").append(std::to_string(worker)); }

class CoordinatorMachineTest : public MachineTest {
 protected:
  CoordinatorMachineTest() {
    config.steps = 3;
    config.train_samples = 24;
    config.global_batch = 12;
    config.chunks = 2;
  }
};

TEST_F(CoordinatorMachineTest, EveryActionThatNeedsOneHasAReason) {
  start();
  join(1);
  join(2);
  for (int step = 0; step < 3; ++step) {
    const std::vector<Action> grants = of(ActionKind::grant);
    actions.clear();
    for (const Action& grant : grants) deliver(grant);
  }
  EXPECT_TRUE(machine->finished());
  for (const Action& action : actions) {
    const bool plain = action.kind == ActionKind::open_pass || action.kind == ActionKind::measured;
    if (plain) continue;
    EXPECT_NE(sentence(action.reason, name_of), "no reason given");
  }
}

TEST_F(CoordinatorMachineTest, EveryGrantEndsOnce) {
  config.test_samples = 7;
  start();
  join(1);
  join(2);
  join(3);
  std::size_t answered = 0;
  for (int round = 0; round < 50 && !machine->finished(); ++round) {
    const std::vector<Action> grants = of(ActionKind::grant);
    for (; answered < grants.size(); ++answered) {
      const Action& grant = grants[answered];
      if (machine->lease(grant.lease) == nullptr || !machine->lease(grant.lease)->live()) continue;
      if (machine->pass()->id.kind == PassKind::evaluate) {
        happen(LeaseFinished{grant.session, grant.lease, grant.range.count, 1, 0, 0});
      } else if (answered == 2) {
        happen(SessionEnded{grant.session, false});
      } else {
        deliver(grant);
      }
    }
  }
  ASSERT_TRUE(machine->finished());
  for (const Action& grant : of(ActionKind::grant)) {
    const auto ends = std::count_if(actions.begin(), actions.end(), [&](const Action& action) {
      return action.lease == grant.lease && (action.kind == ActionKind::taken || action.kind == ActionKind::cancel);
    });
    EXPECT_EQ(ends, 1) << "lease " << grant.lease;
  }
}

TEST_F(CoordinatorMachineTest, TheReasonOfAReissueNamesTheWorker) {
  start();
  join(1);
  deliver(of(ActionKind::grant)[0]);
  join(2);
  const Action lost = of(ActionKind::grant).back();
  actions.clear();
  happen(SessionEnded{lost.session, false});
  ASSERT_EQ(of(ActionKind::grant).size(), 1u);
  EXPECT_EQ(sentence(of(ActionKind::grant)[0].reason, name_of),
            name_of(lost.session) + " was lost before it delivered these positions");
}

TEST_F(CoordinatorMachineTest, AnOverdueWorkerGetsNothingMore) {
  start();
  join(1);
  happen(Ticked{});
  for (int i = 0; i < 101; ++i) {
    now += milliseconds(100);
    machine->heard(1, now);
    happen(Ticked{});
  }
  EXPECT_EQ(of(ActionKind::grant).size(), 1u) << "alone: nobody else could do it";
  join(2);
  ASSERT_EQ(of(ActionKind::grant).size(), 2u);
  EXPECT_EQ(of(ActionKind::grant)[1].session, 2u);
  EXPECT_EQ(of(ActionKind::grant)[1].reason.code, ReasonCode::overdue);
}

TEST_F(CoordinatorMachineTest, WhereNothingWasMeasuredWhatKeepsComingIsNotOverdueUpToABound) {
  config.min_workers = 2;
  config.chunks = 4;
  performance.guessed = true;
  start();
  join(1);
  join(2);
  happen(Ticked{});
  ASSERT_EQ(of(ActionKind::grant).size(), 2u);
  const Action slow = of(ActionKind::grant)[0], other = of(ActionKind::grant)[1];
  begin(slow);
  begin(other);
  const auto pass = [&](int tenths) {
    for (int i = 0; i < tenths; ++i) {
      now += milliseconds(100);
      tick();
    }
  };
  const auto overdue = [&](const Action& grant) { return machine->lease(grant.lease)->due.passed; };
  pass(90);
  happen(ChunkArrived{slow.session, slow.lease, 0});
  pass(20);
  EXPECT_FALSE(overdue(slow));
  EXPECT_TRUE(overdue(other)) << "nothing came of it";
  pass(70);
  happen(ChunkArrived{slow.session, slow.lease, 1});
  pass(10);
  EXPECT_FALSE(overdue(slow));
  pass(20);
  EXPECT_TRUE(overdue(slow)) << "a step is not longer than so many times as there are members";
}

TEST_F(CoordinatorMachineTest, AnUnheardWorkerIsOverdueSooner) {
  performance.allowed_unheard = milliseconds(500);
  config.min_workers = 2;
  start();
  join(1);
  join(2);
  happen(Ticked{});
  ASSERT_EQ(of(ActionKind::grant).size(), 2u);
  const Interval missing = of(ActionKind::grant)[0].range;
  deliver(of(ActionKind::grant)[1]);
  for (int i = 0; i < 7; ++i) {
    now += milliseconds(100);
    machine->heard(2, now);
    happen(Ticked{});
    EXPECT_EQ(of(ActionKind::grant).size(), 2u) << "heartbeats may be as late as that";
  }
  now += milliseconds(100);
  happen(Ticked{});
  ASSERT_EQ(of(ActionKind::grant).size(), 3u);
  EXPECT_EQ(of(ActionKind::grant)[2].session, 2u);
  EXPECT_EQ(of(ActionKind::grant)[2].range, missing);
  EXPECT_EQ(of(ActionKind::grant)[2].reason.code, ReasonCode::overdue);
  deliver(of(ActionKind::grant)[2]);
  ASSERT_EQ(of(ActionKind::cancel).size(), 1u) << "covered elsewhere";
  EXPECT_TRUE(of(ActionKind::late).empty()) << "nothing is learned of who is not heard of";
  ASSERT_EQ(machine->version(), 1u);
  ASSERT_EQ(of(ActionKind::grant).size(), 4u);
  EXPECT_EQ(of(ActionKind::grant)[3].range.count, config.global_batch)
      << "nor is anything of the next step shared with it";
  machine->heard(1, now);
  deliver(of(ActionKind::grant)[3]);
  EXPECT_EQ(of(ActionKind::grant).size(), 6u) << "it is here again";
}

TEST_F(CoordinatorMachineTest, WhoIsHeardOfHasTheWholeTime) {
  performance.allowed_unheard = milliseconds(500);
  config.min_workers = 2;
  start();
  join(1);
  join(2);
  happen(Ticked{});
  deliver(of(ActionKind::grant)[1]);
  for (int i = 0; i < 90; ++i) {
    now += milliseconds(100);
    machine->heard(1, now);
    machine->heard(2, now);
    happen(Ticked{});
  }
  EXPECT_EQ(of(ActionKind::grant).size(), 2u);
}

TEST_F(CoordinatorMachineTest, ATickGapMovesDeadlines) {
  start();
  join(1);
  happen(Ticked{});
  now += seconds(60);
  happen(Ticked{});
  EXPECT_EQ(of(ActionKind::warn).size(), 1u);
  EXPECT_EQ(of(ActionKind::warn)[0].reason.code, ReasonCode::woke);
  EXPECT_TRUE(of(ActionKind::close_session).empty());
  EXPECT_FALSE(machine->leases()[0].due.passed);
}

TEST_F(CoordinatorMachineTest, MinWorkersHoldsOnlyBeforeTheFirstStep) {
  config.min_workers = 2;
  start();
  join(1);
  EXPECT_EQ(machine->members_wanted(), 1u);
  EXPECT_FALSE(machine->pass().has_value());
  join(2);
  ASSERT_TRUE(machine->pass().has_value());
  happen(SessionEnded{2, false});
  for (const Action& grant : of(ActionKind::grant))
    if (grant.session == 1) deliver(grant);
  EXPECT_EQ(machine->version(), 1u);
  EXPECT_TRUE(machine->pass().has_value()) << "one is enough now";
}

TEST_F(CoordinatorMachineTest, RepeatedAndForeignEventsDoNothing) {
  start();
  join(1);
  join(2);
  const Action grant = of(ActionKind::grant)[0];
  happen(LeaseBegun{2, grant.lease, grant.range, 12, 0});
  EXPECT_EQ(machine->leases()[0].state, LeaseState::granted);
  happen(LeaseBegun{1, grant.lease, grant.range, 12, 0});
  happen(LeaseBegun{1, grant.lease, grant.range, 99, 0});
  EXPECT_EQ(machine->coverage().weight(), 12);
  happen(WorkerSynced{1, 0});
  happen(SessionOpened{1, false});
  happen(SessionEnded{77, false});
  happen(WorkerReady{77, 77});
  happen(LeaseFailed{1, 4711});
  EXPECT_EQ(machine->members().admitted(), 2u);
}

TEST_F(CoordinatorMachineTest, AMemberFromTheFutureIsNotBelieved) {
  start();
  happen(SessionOpened{1, false});
  happen(WorkerReady{1, 1});
  happen(WorkerSynced{1, 9});
  EXPECT_FALSE(machine->pass().has_value());
}

}  // namespace
}  // namespace motley::cluster
