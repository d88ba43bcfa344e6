// Who has which samples so far: nobody is granted what it lacks, unless nobody has it.

#include <gtest/gtest.h>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

class StockTest : public MachineTest {
 protected:
  StockTest() {
    config.steps = 6;
    config.train_samples = 36;  // three steps an epoch
    config.global_batch = 12;
    config.chunks = 1;
    config.min_workers = 2;
  }
  void tell(SessionId session, std::uint64_t epoch, std::uint64_t first, std::uint64_t count) {
    happen(StockTold{session, {.all = false, .epoch = epoch, .first = first, .count = count}});
  }
  /// Who was granted something of the open step; it is made.
  std::vector<SessionId> step() {
    const std::vector<Action> grants = of(ActionKind::grant);
    actions.clear();
    std::vector<SessionId> who;
    for (const Action& grant : grants) who.push_back(grant.session);
    for (const Action& grant : grants) {
      if (grant.pass.kind == PassKind::evaluate) {
        happen(LeaseFinished{grant.session, grant.lease, grant.range.count, 1, 0, 0});
      } else {
        deliver(grant);
      }
    }
    std::ranges::sort(who);
    return who;
  }
  const std::vector<SessionId> kFirst{1}, kSecond{2}, kBoth{1, 2};
};

TEST_F(StockTest, NobodyIsGrantedASampleThatIsNotThere) {
  start();
  join(1);
  happen(SessionOpened{2, false});
  tell(2, 0, 12, 24);  // before it is admitted
  happen(WorkerReady{2, 2});
  happen(WorkerSynced{2, machine->version()});
  EXPECT_EQ(step(), kFirst);
  EXPECT_EQ(step(), kBoth);
  EXPECT_EQ(step(), kBoth);
  EXPECT_EQ(step(), kFirst) << "of another epoch";
  tell(2, 1, 12, 11);
  happen(StockTold{2, {}});
  EXPECT_EQ(step(), kFirst) << "it was open before";
  EXPECT_EQ(step(), kBoth);
  EXPECT_TRUE(machine->finished());
}

TEST_F(StockTest, APartOfAStepIsNotEnough) {
  start();
  join(1);
  join(2);
  step();
  tell(2, 0, 24, 11);
  step();
  EXPECT_EQ(step(), kFirst);
  tell(1, 1, 0, 12);
  tell(2, 1, ~std::uint64_t{0}, ~std::uint64_t{0});  // beyond all orders
  step();
}

TEST_F(StockTest, WhatNobodyHasIsGrantedAndWaitedFor) {
  start();
  join(1);
  join(2);
  tell(1, 0, 0, 0);
  tell(2, 0, 0, 0);
  step();
  EXPECT_EQ(step(), kBoth);
}

TEST_F(StockTest, WhatALostWorkerLeavesGoesToWhoHasIt) {
  config.min_workers = 3;
  start();
  join(1);
  join(2);
  happen(SessionOpened{3, false});
  tell(3, 0, 12, 24);
  happen(WorkerReady{3, 3});
  happen(WorkerSynced{3, machine->version()});
  const std::vector<Action> lost = of(ActionKind::grant, 2);
  ASSERT_EQ(lost.size(), 1U);
  actions.clear();
  happen(SessionEnded{2, false});
  EXPECT_FALSE(of(ActionKind::grant, 1).empty());
  EXPECT_TRUE(of(ActionKind::grant, 3).empty());
}

TEST_F(StockTest, WhoLacksTestSamplesEvaluatesNothingUnlessAllDo) {
  config.test_samples = 24;
  start();
  join(1);
  join(2);
  happen(StockTold{2, {.lacks_tests = true}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(), kBoth);
  ASSERT_EQ(machine->pass()->id.kind, PassKind::evaluate);
  EXPECT_EQ(step(), kFirst);
  happen(StockTold{1, {.lacks_tests = true}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(), kBoth);
  ASSERT_EQ(machine->pass()->id.kind, PassKind::evaluate);
  EXPECT_EQ(step(), kBoth);
}

TEST_F(StockTest, WhoIsNotThereSaysNothing) {
  start();
  tell(7, 0, 0, 12);
  join(1);
  join(2);
  EXPECT_EQ(step(), kBoth);
}

}  // namespace
}  // namespace motley::cluster
