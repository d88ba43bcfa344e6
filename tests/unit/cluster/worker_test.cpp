#include "cluster/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "worker_fixture.h"

namespace motley::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(WorkerMachineTest, JoinsStepByStep) {
  EXPECT_THAT(tell(event::Connected{}), IsEmpty());
  EXPECT_THAT(tell(event::SpecWhole{}), ElementsAre(Kind::prepare));
  EXPECT_EQ(machine.state(), WorkerState::loading);
  EXPECT_THAT(tell(event::Prepared{}), ElementsAre(Kind::send_ready));
  EXPECT_THAT(tell(event::Admitted{}), IsEmpty());
  EXPECT_EQ(machine.state(), WorkerState::syncing);
  EXPECT_THAT(tell(event::VersionWhole{7}), ElementsAre(Kind::adopt, Kind::send_synced));
  EXPECT_EQ(last().version, 7U);
  EXPECT_EQ(machine.state(), WorkerState::member);
}

TEST_F(WorkerMachineTest, WeightsMayOvertakeAdmission) {
  tell(event::Connected{});
  tell(event::SpecWhole{});
  tell(event::Prepared{});
  EXPECT_THAT(tell(event::VersionWhole{3}), IsEmpty());
  EXPECT_THAT(tell(event::Admitted{}), ElementsAre(Kind::adopt, Kind::send_synced));
}

TEST_F(WorkerMachineTest, AMemberMovesOnlyWhenClosedAndWhole) {
  join(0);
  tell(opened(0));
  EXPECT_THAT(tell(event::VersionWhole{1}), IsEmpty());
  EXPECT_EQ(machine.version(), 0U);
  EXPECT_THAT(tell(closed(0)), ElementsAre(Kind::step_done, Kind::adopt));
  EXPECT_EQ(machine.version(), 1U);
  EXPECT_THAT(tell(closed(1)), ElementsAre(Kind::step_done));
  EXPECT_EQ(machine.version(), 1U);
  EXPECT_THAT(tell(event::VersionWhole{2}), ElementsAre(Kind::adopt));
  EXPECT_EQ(machine.version(), 2U);
}

TEST_F(WorkerMachineTest, AJoinerThatWasOvertakenIsSyncedAgain) {
  join(4);
  EXPECT_THAT(tell(event::VersionWhole{5}), ElementsAre(Kind::adopt, Kind::send_synced));
  tell(opened(5));
  EXPECT_THAT(tell(event::VersionWhole{6}), IsEmpty()) << "a member by now";
}

TEST_F(WorkerMachineTest, ChunksOfALaterVersionProveThatTheOneBeforeIsClosed) {
  join(0);
  tell(opened(0));
  tell(event::VersionWhole{1});
  EXPECT_THAT(tell(event::VersionSeen{2}), ElementsAre(Kind::adopt));
  EXPECT_EQ(machine.version(), 1U);
}

TEST_F(WorkerMachineTest, ARepeatedGrantIsDropped) {
  join(0);
  tell(grant(0, 1));
  EXPECT_THAT(tell(grant(0, 1)), IsEmpty());
  tell(event::TaskBegun{1, 8});
  tell(event::TaskFinished{1, 8});
  EXPECT_THAT(tell(grant(0, 1)), IsEmpty());
}

TEST_F(WorkerMachineTest, TrimNeverGoesBelowWhatIsDone) {
  join(0);
  tell(grant(0, 1));
  tell(event::TaskProgress{1, 4});
  EXPECT_THAT(tell(wire::Trim{pass_of(0), 1, 2, 1}), ElementsAre(Kind::limit_task));
  EXPECT_EQ(last().count, 4U);
  EXPECT_THAT(tell(event::TaskLimited{1, 6}), ElementsAre(Kind::send_progress)) << "it was beyond that already";
  EXPECT_EQ(last().limit, 6U);
  tell(event::TaskBegun{1, 6});
  EXPECT_THAT(tell(event::TaskProgress{1, 6}), IsEmpty()) << "Begin said so";
  EXPECT_THAT(tell(wire::Trim{pass_of(0), 1, 0, 2}), IsEmpty()) << "no effect after Begin";
  EXPECT_THAT(tell(wire::Cancel{pass_of(0), 1}), IsEmpty());
  EXPECT_THAT(tell(event::TaskFinished{1, 6}), ElementsAre(Kind::send_finish));
  EXPECT_EQ(last().count, 6U);
}

TEST_F(WorkerMachineTest, TheLastOfSeveralTrimsIsAnswered) {
  join(0);
  tell(grant(0, 1));
  EXPECT_THAT(tell(wire::Trim{pass_of(0), 1, 2, 1}), ElementsAre(Kind::limit_task));
  EXPECT_THAT(tell(wire::Trim{pass_of(0), 1, 6, 2}), ElementsAre(Kind::limit_task)) << "raised again";
  EXPECT_EQ(last().count, 6U);
  EXPECT_THAT(tell(event::TaskLimited{1, 2}), IsEmpty()) << "this was the first, which holds no more";
  EXPECT_THAT(tell(event::TaskLimited{1, 6}), ElementsAre(Kind::send_progress));
  EXPECT_EQ(last().limit, 6U);
  EXPECT_EQ(last().trim, 2U);
  EXPECT_THAT(tell(wire::Trim{pass_of(0), 1, 20, 3}), ElementsAre(Kind::limit_task));
  EXPECT_EQ(last().count, 8U) << "not beyond what was granted";
  tell(event::TaskBegun{1, 8});
  EXPECT_THAT(tell(event::TaskLimited{1, 8}), IsEmpty()) << "Begin said so";
}

TEST_F(WorkerMachineTest, ATrimThatComesTwiceCountsOnce) {
  join(0);
  tell(grant(0, 1));
  tell(grant(0, 2));
  for (const std::uint64_t lease : {1U, 2U}) {
    tell(wire::Trim{pass_of(0), lease, 6, 1});
    tell(wire::Trim{pass_of(0), lease, 3, 2});
    EXPECT_EQ(lease == 1 ? last().count : last().limit, 3U);
    EXPECT_THAT(tell(wire::Trim{pass_of(0), lease, 6, 1}), IsEmpty());
  }
  tell(event::TaskFinished{1, 3});
  EXPECT_EQ(last().lease.limit, 3U);
  EXPECT_THAT(tell(wire::Trim{pass_of(0), 2, 6, 1}), IsEmpty());
}

TEST_F(WorkerMachineTest, AGrantMayStartBelowItsCeiling) {
  join(0);
  wire::Grant meeting = grant(0, 1);
  meeting.limit = 5;
  meeting.from_end = true;
  EXPECT_THAT(tell(meeting), ElementsAre(Kind::start_task));
  EXPECT_EQ(last().lease.limit, 5U);
  EXPECT_EQ(last().lease.count, 8U);
  EXPECT_TRUE(last().lease.from_end);
}

TEST_F(WorkerMachineTest, TrimAndCancelOfAWaitingLease) {
  join(0);
  tell(grant(0, 1));
  tell(grant(0, 2));
  tell(grant(0, 3));
  EXPECT_THAT(tell(wire::Trim{pass_of(0), 2, 3, 1}), ElementsAre(Kind::send_progress));
  EXPECT_EQ(last().limit, 3U);
  EXPECT_EQ(last().trim, 1U);
  EXPECT_THAT(tell(wire::Cancel{pass_of(0), 3}), ElementsAre(Kind::send_finish));
  EXPECT_EQ(last().count, 0U);
  EXPECT_EQ(last().lease.lease, 3U);
  EXPECT_THAT(tell(event::TaskFinished{1, 8}), ElementsAre(Kind::send_finish, Kind::start_task));
  EXPECT_EQ(last().lease.limit, 3U);
}

TEST_F(WorkerMachineTest, ACancelledTaskEndsWithAnEmptyFinishWhateverItStillYields) {
  join(0);
  tell(grant(0, 1));
  EXPECT_THAT(tell(wire::Cancel{pass_of(0), 1}), ElementsAre(Kind::limit_task));
  EXPECT_EQ(last().count, 0U);
  EXPECT_EQ(machine.wanted(1), nullptr);
  EXPECT_THAT(tell(event::TaskBegun{1, 8}), IsEmpty());
  EXPECT_THAT(tell(event::TaskFinished{1, 8}), ElementsAre(Kind::send_finish));
  EXPECT_EQ(last().count, 0U);
}

TEST_F(WorkerMachineTest, AClosedPassEndsItsTaskSilently) {
  join(0);
  tell(grant(0, 1));
  tell(grant(0, 2));
  tell(event::TaskBegun{1, 8});
  EXPECT_THAT(tell(closed(0)), ElementsAre(Kind::limit_task, Kind::step_done));
  EXPECT_THAT(tell(event::VersionWhole{1}), ElementsAre(Kind::adopt));
  EXPECT_THAT(tell(grant(1, 3)), IsEmpty()) << "the device is still busy";
  EXPECT_THAT(tell(event::TaskFinished{1, 8}), ElementsAre(Kind::start_task));
  EXPECT_EQ(last().lease.lease, 3U);
}

TEST_F(WorkerMachineTest, AStaleGrantIsGivenBack) {
  join(5);
  EXPECT_THAT(tell(grant(4, 1)), ElementsAre(Kind::send_finish));
  EXPECT_EQ(last().count, 0U);
}

TEST_F(WorkerMachineTest, SilenceEndsTheSessionAndAPauseOfOursDoesNot) {
  join(0);
  tell(event::Heard{});
  now += milliseconds(1000);
  EXPECT_THAT(tell(event::Tick{}), ElementsAre(Kind::send_heartbeat));
  now += std::chrono::seconds(5);  // stopped: whatever came meanwhile is still to be read
  EXPECT_THAT(tell(event::Tick{}), ElementsAre(Kind::send_heartbeat));
  now += milliseconds(700);
  EXPECT_THAT(tell(event::Tick{}), ElementsAre(Kind::send_heartbeat));
  now += milliseconds(200);
  tell(event::Tick{});
  EXPECT_THAT(all.back().kind, Kind::disconnect);
  EXPECT_TRUE(last().reconnect);
  EXPECT_FALSE(machine.open());
}

TEST_F(WorkerMachineTest, LeavingFinishesTheLeaseAndNothingElse) {
  join(0);
  tell(grant(0, 1));
  tell(grant(0, 2));
  EXPECT_THAT(tell(event::LeaveAsked{}), ElementsAre(Kind::send_yield, Kind::finish_early, Kind::send_finish));
  EXPECT_EQ(last().lease.lease, 2U);
  EXPECT_THAT(tell(grant(0, 3)), ElementsAre(Kind::send_finish)) << "was under way";
  EXPECT_EQ(last().count, 0U);
  EXPECT_THAT(tell(event::TaskBegun{1, 8}), ElementsAre(Kind::send_begin));
  EXPECT_THAT(tell(event::TaskFinished{1, 8}), ElementsAre(Kind::send_finish));
  EXPECT_EQ(last().count, 8U);
  tell(wire::Bye{"leave", {}, {}, {}});
  EXPECT_EQ(last().kind, Kind::disconnect);
  EXPECT_FALSE(last().reconnect);
}

TEST_F(WorkerMachineTest, LeavingEndsForGoodWhateverHappensToTheChannel) {
  join(0);
  tell(event::LeaveAsked{});
  tell(event::Disconnected{});
  EXPECT_EQ(last().kind, Kind::disconnect);
  EXPECT_FALSE(last().reconnect);
}

TEST_F(WorkerMachineTest, LeavingWithoutAChannelEndsAtOnce) {
  EXPECT_THAT(tell(event::LeaveAsked{}), ElementsAre(Kind::disconnect));
  EXPECT_FALSE(last().reconnect);
  EXPECT_THAT(tell(event::LeaveAsked{}), IsEmpty());
}

TEST_F(WorkerMachineTest, SteppingAsideEndsTheSessionAlone) {
  const event::LeaveAsked aside{.for_good = false};
  EXPECT_THAT(tell(aside), IsEmpty()) << "no channel";
  join(0);
  tell(grant(0, 1));
  EXPECT_THAT(tell(aside), ElementsAre(Kind::send_yield, Kind::finish_early));
  EXPECT_EQ(last().number, 1U);
  EXPECT_THAT(tell(aside), IsEmpty());
  EXPECT_THAT(tell(event::TaskFinished{1, 0}), ElementsAre(Kind::send_finish)) << "nothing was begun";
  tell(wire::Bye{"leave", {}, {}, {}});
  EXPECT_EQ(last().kind, Kind::disconnect);
  EXPECT_TRUE(last().reconnect);
  join(3);
  EXPECT_THAT(tell(grant(3, 1)), ElementsAre(Kind::start_task));
}

TEST_F(WorkerMachineTest, SteppingAsideDoesNotOutliveTheRunNorAStop) {
  join(0);
  tell(event::LeaveAsked{.for_good = false});
  tell(wire::Bye{"done", {}, {}, {}});
  EXPECT_FALSE(last().reconnect);
  join(0);
  tell(event::LeaveAsked{.for_good = false});
  EXPECT_THAT(tell(event::LeaveAsked{}), IsEmpty()) << "Yield was sent";
  tell(wire::Bye{"leave", {}, {}, {}});
  EXPECT_FALSE(last().reconnect);
}

TEST_F(WorkerMachineTest, ADeviceThatIsOutEndsTheSessionForGood) {
  join(0);
  EXPECT_THAT(tell(event::DeviceOut{}), ElementsAre(Kind::send_bye, Kind::forget_weights, Kind::disconnect));
  EXPECT_FALSE(last().reconnect);
  EXPECT_THAT(tell(event::DeviceOut{}), ElementsAre(Kind::disconnect));
  EXPECT_FALSE(last().reconnect);
}

TEST_F(WorkerMachineTest, SteppingAsideBeforeAdmissionClosesTheChannel) {
  tell(event::Connected{});
  EXPECT_THAT(tell(event::LeaveAsked{.for_good = false}),
              ElementsAre(Kind::send_bye, Kind::forget_weights, Kind::disconnect));
  EXPECT_TRUE(last().reconnect);
}

TEST_F(WorkerMachineTest, ByeCodes) {
  for (const std::string code : {"lost", "full", "busy", "done", "model", "diverged", "excluded"}) {
    tell(event::Connected{});
    tell(wire::Bye{code, {}, {}, {}});
    EXPECT_EQ(last().kind, Kind::disconnect);
    EXPECT_EQ(last().reconnect, code == "lost" || code == "full" || code == "busy") << code;
    EXPECT_THAT(tell(event::Disconnected{}), IsEmpty()) << "once a session";
  }
}

TEST_F(WorkerMachineTest, ALostSessionKeepsTheDeviceBusyUntilItsTaskEnds) {
  join(0);
  tell(grant(0, 1));
  EXPECT_THAT(tell(event::Disconnected{}), ElementsAre(Kind::limit_task, Kind::forget_weights, Kind::disconnect));
  tell(event::Connected{});
  EXPECT_THAT(tell(event::SpecWhole{}), IsEmpty()) << "the model is in use";
  EXPECT_THAT(tell(event::TaskFinished{1, 8}), ElementsAre(Kind::prepare));
  EXPECT_THAT(tell(event::Prepared{}), ElementsAre(Kind::send_ready));
}

TEST_F(WorkerMachineTest, AFailedTaskIsReported) {
  join(0);
  tell(grant(0, 1));
  EXPECT_THAT(tell(event::TaskFailed{1}), ElementsAre(Kind::send_failed));
  EXPECT_THAT(tell(event::TaskFailed{1}), IsEmpty()) << "an old number";
}

TEST_F(WorkerMachineTest, TheQueueHasALimit) {
  join(0);
  for (std::uint64_t lease = 1; lease <= 1 + WorkerTasks::kLeasesMax; ++lease) tell(grant(0, lease));
  EXPECT_THAT(tell(grant(0, 1000)), ElementsAre(Kind::send_finish));
  EXPECT_EQ(last().reason, WorkerReason::too_many_leases);
  tell(event::LeaveAsked{});  // the longest list of actions
  EXPECT_EQ(all.size(), 2 + WorkerTasks::kLeasesMax);
}

}  // namespace
}  // namespace motley::cluster
