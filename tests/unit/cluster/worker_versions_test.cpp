// Which version a task computes with, and what becomes of weights that do not come.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "worker_fixture.h"

namespace motley::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(WorkerMachineTest, LeasesQueueAndWaitForTheirVersion) {
  join(0);
  EXPECT_THAT(tell(grant(0, 1)), ElementsAre(Kind::start_task));
  EXPECT_EQ(last().number, 1U);
  EXPECT_THAT(tell(grant(0, 2)), IsEmpty());
  EXPECT_THAT(tell(grant(1, 3)), IsEmpty()) << "one pass ahead";
  EXPECT_THAT(tell(event::TaskBegun{1, 8}), ElementsAre(Kind::send_begin));
  EXPECT_THAT(tell(event::TaskFinished{1, 8}), ElementsAre(Kind::send_finish, Kind::start_task));
  EXPECT_THAT(tell(event::TaskBegun{2, 8}), ElementsAre(Kind::send_begin));
  EXPECT_THAT(tell(event::TaskFinished{2, 8}), ElementsAre(Kind::send_finish));
  EXPECT_THAT(tell(event::VersionWhole{1}), IsEmpty());
  EXPECT_THAT(tell(closed(0)), ElementsAre(Kind::step_done, Kind::adopt, Kind::start_task));
  EXPECT_EQ(all[0].count, 16U);
  EXPECT_EQ(last().lease.lease, 3U);
}

TEST_F(WorkerMachineTest, ATrainTaskStartsWhileItsWeightsAreOnTheirWay) {
  join(0);
  tell(opened(0));
  tell(closed(0));
  tell(opened(1));
  EXPECT_THAT(tell(grant(1, 1)), ElementsAre(Kind::start_task));
  EXPECT_EQ(last().lease.version, 1U);
  EXPECT_EQ(machine.version(), 0U);
  now += milliseconds(600);
  EXPECT_THAT(tell(event::Tick{}), ElementsAre(Kind::send_heartbeat));
  EXPECT_EQ(last().number, 0U) << "it may be waiting for them";
  EXPECT_THAT(tell(event::VersionWhole{1}), ElementsAre(Kind::adopt));
  now += milliseconds(600);
  tell(event::Tick{});
  EXPECT_EQ(last().number, 1U);
  EXPECT_THAT(tell(event::TaskBegun{1, 8}), ElementsAre(Kind::send_begin));
  EXPECT_THAT(tell(event::TaskFinished{1, 8}), ElementsAre(Kind::send_finish));
}

TEST_F(WorkerMachineTest, AnOverlappedLeaseStartsBeforeItsWeightsAreThere) {
  join(0);
  tell(opened(0));
  wire::Grant ahead = grant(1, 1);
  ahead.local_steps = 4;
  ahead.ahead = 2;
  EXPECT_THAT(tell(ahead), ElementsAre(Kind::start_task));
  EXPECT_THAT(tell(event::VersionWhole{1}), IsEmpty());
  EXPECT_THAT(tell(closed(0)), ElementsAre(Kind::step_done, Kind::adopt)) << "and it goes on";
  ahead.lease = 2;
  ahead.version = 3;
  ahead.pass = pass_of(3);
  tell(event::TaskFinished{1, 8});
  EXPECT_THAT(tell(ahead), IsEmpty()) << "of the version after the next";
}

TEST_F(WorkerMachineTest, OtherTasksWaitForTheirWeights) {
  join(0);
  tell(opened(0));
  EXPECT_THAT(tell(grant(1, 1)), IsEmpty()) << "the version is not closed";
  for (const std::uint64_t kind : {2, 3}) {
    machine = WorkerMachine{{milliseconds(500), milliseconds(1800)}};
    join(0);
    tell(opened(0));
    tell(closed(0));
    wire::Grant other = grant(1, 1);
    other.pass = kind << 56 | 1;
    EXPECT_THAT(tell(other), IsEmpty()) << "of kind " << kind;
    EXPECT_THAT(tell(event::VersionWhole{1}), ElementsAre(Kind::adopt, Kind::start_task));
  }
}

TEST_F(WorkerMachineTest, ATaskWhoseWeightsDoNotComeIsGivenBack) {
  for (const bool differ : {false, true}) {
    machine = WorkerMachine{{milliseconds(500), milliseconds(1800)}};
    join(0);
    tell(opened(0));
    tell(closed(0));
    tell(grant(1, 1));
    std::vector<Kind> seen;
    if (differ) seen = tell(event::WeightsDiffer{1});
    for (int i = 0; i < 40 && machine.state() == WorkerState::member; ++i) {
      now += milliseconds(100);
      tell(event::Heard{});
      seen = tell(event::Tick{});
    }
    EXPECT_THAT(seen, testing::IsSupersetOf({Kind::limit_task, Kind::forget_weights, Kind::send_refresh}));
    EXPECT_EQ(machine.wanted(1), nullptr);
    EXPECT_THAT(tell(event::TaskFinished{1, 0}), ElementsAre(Kind::send_finish));
    EXPECT_EQ(last().count, 0U);
  }
}

TEST_F(WorkerMachineTest, ATaskAtAVersionHeldGoesOnWhenTheNextDiffers) {
  join(0);
  tell(opened(0));
  tell(grant(0, 1));
  EXPECT_THAT(tell(event::WeightsDiffer{1}), ElementsAre(Kind::forget_weights, Kind::send_refresh));
  EXPECT_NE(machine.wanted(1), nullptr);
}

TEST_F(WorkerMachineTest, MissingChunksOfAClosedVersionAreAskedFor) {
  join(0);
  tell(opened(0));
  tell(closed(0));
  std::vector<Kind> seen;
  for (int i = 0; i < 40 && machine.state() == WorkerState::member; ++i) {
    now += milliseconds(100);
    tell(event::Heard{});
    seen = tell(event::Tick{});
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({Kind::forget_weights, Kind::send_refresh}));
  EXPECT_EQ(machine.state(), WorkerState::syncing);
  EXPECT_THAT(tell(event::VersionWhole{1}), ElementsAre(Kind::adopt, Kind::send_synced));
}

TEST_F(WorkerMachineTest, WeightsThatDifferAreAskedForAtOnce) {
  join(0);
  tell(opened(0));
  EXPECT_THAT(tell(event::WeightsDiffer{1}), ElementsAre(Kind::forget_weights, Kind::send_refresh));
  EXPECT_EQ(last().version, 1U);
  EXPECT_EQ(machine.state(), WorkerState::syncing);
  EXPECT_EQ(machine.version(), std::nullopt);
  EXPECT_THAT(tell(event::VersionWhole{1}), ElementsAre(Kind::adopt, Kind::send_synced));
  EXPECT_EQ(machine.state(), WorkerState::member);
}

TEST_F(WorkerMachineTest, WhoLeavesGoesOnLeavingWhenItsWeightsDiffer) {
  join(0);
  tell(grant(0, 1));
  tell(event::LeaveAsked{});
  tell(event::WeightsDiffer{1});
  EXPECT_EQ(machine.state(), WorkerState::leaving);
}

}  // namespace
}  // namespace motley::cluster
