// Undisturbed runs: shares, sums, evaluation, the end.

#include "fixture.h"

namespace motley::engine {
namespace {

TEST_F(CoordinatorTest, OneWorkerTrainsLikeOneMachine) {
  make();
  join(1);
  run_exact(4);
  EXPECT_EQ(output.times_finished, 1);
  EXPECT_EQ(output.closed.at(1).code, "done");
  ASSERT_EQ(output.steps.size(), 4u);
  EXPECT_EQ(output.steps[2].samples, 8u) << "the last step of an epoch is short";
  EXPECT_EQ(output.steps[3].epoch, 1u);
}

TEST_F(CoordinatorTest, ThreeWorkersGiveTheSameBits) {
  options.grain = 2;
  options.shares = {3, 1, 2};
  make();
  for (SessionId session : {1, 2, 3}) open(session);
  for (SessionId session : {1, 2, 3}) ready(peers[session]);
  options.min_workers = 3;
  for (SessionId session : {1, 2, 3}) synced(peers[session]);
  run_exact(4);
  ASSERT_EQ(output.steps.size(), 4u);
  EXPECT_EQ(output.steps[1].ranges.size(), 3u);
}

TEST_F(CoordinatorTest, SharesFollowTheOptionInOrderOfAdmission) {
  options.grain = 2;
  make_with({6, 2});
  join(1);
  EXPECT_EQ(coordinator->waiting_for(), "waiting for 1 worker to join");
  EXPECT_TRUE(peers[1].grants.empty());
  join(2);
  ASSERT_EQ(peers[1].grants.size(), 1u);
  ASSERT_EQ(peers[2].grants.size(), 1u);
  EXPECT_EQ(peers[1].grants[0].count, 12u);
  EXPECT_EQ(peers[2].grants[0].first, 12u);
  EXPECT_EQ(peers[2].grants[0].count, 4u);
}

TEST_F(CoordinatorTest, ClippingWaitsForEveryChunk) {
  make(0, 0.5);
  Peer& a = join(1);
  const wire::Grant grant = begun(a);
  const auto chunks = static_cast<ChunkId>(layout.chunks().size());
  for (ChunkId chunk = 0; chunk + 1 < chunks; ++chunk) push(a, grant, chunk);
  EXPECT_EQ(a.weights.count(1), 0u);
  push(a, grant, chunks - 1);
  EXPECT_EQ(a.weights[1].size(), chunks);
  run_exact(4, 0.5);
  EXPECT_GT(output.steps[0].gradient_norm, 0.5);
}

TEST_F(CoordinatorTest, WithoutClippingAChunkLeavesAtOnce) {
  make();
  Peer& a = join(1);
  const wire::Grant grant = begun(a);
  push(a, grant, 2);
  EXPECT_EQ(a.weights[1].size(), 1u);
  EXPECT_EQ(a.weights[1].count(2), 1u);
  EXPECT_TRUE(a.all<wire::PassClosed>().empty());
}

TEST_F(CoordinatorTest, WorkersHoldExactlyTheServersWeights) {
  make();
  Peer& remote = join(1);
  Peer& local = join(2, "local", true);
  run();
  for (Peer* peer : {&remote, &local}) {
    ASSERT_EQ(peer->weights[4].size(), layout.chunks().size());
    for (const auto& [chunk, bytes] : peer->weights[4]) {
      const auto held = coordinator->server().weights(chunk).bytes();
      EXPECT_TRUE(std::equal(held.begin(), held.end(), bytes.begin(), bytes.end()));
    }
  }
  for (const wire::Frame& frame : remote.frames) EXPECT_TRUE(wire::verify_body(frame.header, frame.body.bytes()).ok());
  for (const wire::Frame& frame : local.frames) EXPECT_EQ(frame.header.length, frame.header.total);
}

TEST_F(CoordinatorTest, ChunksMayArriveBeforeBegin) {
  make();
  Peer& a = join(1);
  const wire::Grant grant = take(a);
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(a, grant, chunk);
  EXPECT_TRUE(output.steps.empty());
  begin(a, grant);
  EXPECT_EQ(output.steps.size(), 1u);
  EXPECT_EQ(a.all<wire::Taken>().size(), 1u);
  run_exact(4);
}

TEST_F(CoordinatorTest, EveryFrameTwiceChangesNothing) {
  copies = 2;
  options.test_samples = 10;
  make();
  join(1);
  join(2);
  run_exact(4);
  EXPECT_EQ(output.times_finished, 1);
  for (const Evaluated& evaluation : output.evaluations) EXPECT_EQ(evaluation.weight, 10);
}

TEST_F(CoordinatorTest, SegmentsInAnyOrderMakeAChunk) {
  make();
  Peer& a = join(1);
  const wire::Grant grant = begun(a);
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
    const wire::Frame whole = gradient_frame(a, grant, chunk);
    const std::uint32_t cut = whole.header.length / 8 * 4;
    wire::FrameHeader second = whole.header;
    second.offset = cut;
    deliver(a, wire::seal(second, whole.body.slice(cut, whole.body.size() - cut)));
    wire::FrameHeader first = whole.header;
    deliver(a, wire::seal(first, whole.body.slice(0, cut)));
  }
  run_exact(4);
}

TEST_F(CoordinatorTest, EvaluatesAtTheEndOfEpochsAndOfTheRun) {
  options.test_samples = 10;
  make();
  join(1);
  join(2);
  run();
  ASSERT_EQ(output.evaluations.size(), 2u);
  EXPECT_EQ(output.evaluations[0].version, 3u);
  EXPECT_EQ(output.evaluations[0].epoch, 0u);
  EXPECT_EQ(output.evaluations[1].version, 4u);
  EXPECT_EQ(output.evaluations[1].epoch, 1u);
  for (const Evaluated& evaluation : output.evaluations) {
    EXPECT_EQ(evaluation.samples, 10u);
    EXPECT_EQ(evaluation.weight, 10);
    EXPECT_EQ(evaluation.loss_sum, loss_of(0, 10));
  }
  EXPECT_EQ(output.times_finished, 1);
}

TEST_F(CoordinatorTest, EvaluatesEverySoManySteps) {
  options.test_samples = 10;
  options.evaluate_every = 2;
  options.steps = 5;
  make();
  join(1);
  run();
  std::vector<std::uint64_t> versions;
  for (const Evaluated& evaluation : output.evaluations) versions.push_back(evaluation.version);
  EXPECT_EQ(versions, (std::vector<std::uint64_t>{2, 4, 5}));
}

TEST_F(CoordinatorTest, AResumedRunThatIsOverIsEvaluatedOnce) {
  options.test_samples = 10;
  make(4);
  join(1);
  run();
  EXPECT_TRUE(output.steps.empty());
  ASSERT_EQ(output.evaluations.size(), 1u);
  EXPECT_EQ(output.evaluations[0].version, 4u);
  EXPECT_EQ(output.times_finished, 1);
}

TEST_F(CoordinatorTest, NothingToDoIsFinishedAtOnce) {
  make(4);
  EXPECT_EQ(output.times_finished, 1);
  Peer& late = open(1);
  EXPECT_EQ(output.closed.at(1).code, "done");
  EXPECT_TRUE(late.all<wire::RunSpec>().empty());
}

TEST_F(CoordinatorTest, AStepReportsWhoDidWhat) {
  make_with({1, 1});
  Peer& a = join(1);
  Peer& b = join(2);
  now += ms(40);
  work(a);
  work(b);
  ASSERT_EQ(output.steps.size(), 1u);
  const StepClosed& step = output.steps[0];
  EXPECT_EQ(step.duration, Duration(ms(40)));
  ASSERT_EQ(step.workers.size(), 2u);
  EXPECT_EQ(step.workers[0].name, "w1");
  EXPECT_EQ(step.workers[0].samples, 8u);
  EXPECT_EQ(step.workers[0].compute_seconds, 0.5);
  EXPECT_EQ(step.ranges[1].worker, "w2");
}

TEST_F(CoordinatorTest, SharesMoveToTheFasterWorker) {
  options.global_batch = 32;
  options.train_samples = 320;
  options.steps = 8;
  options.min_workers = 2;
  make();
  Peer& fast = join(1, {}, false, 0.001);
  Peer& slow = join(2, {}, false, 0.003);
  for (int step = 0; step < 5; ++step) {
    const Time opened = now;
    now = opened + ms(1) * static_cast<int>(fast.grants.at(0).count);
    work(fast);
    now = std::max<Time>(now, opened + ms(3) * static_cast<int>(slow.grants.at(0).count));
    work(slow);
  }
  EXPECT_EQ(fast.grants.at(0).count, 24u);
  EXPECT_EQ(slow.grants.at(0).count, 8u);
}

TEST_F(CoordinatorTest, StepsAreCutAsAnEarlierProcessSaid) {
  options.train_samples = 500;
  options.global_batch = 16;
  options.steps = 0;
  options.epochs = 4;
  options.min_workers = 2;
  options.shares = {3, 1};
  options.batch_changes = {{3, 100}};
  make(3);
  join(1);
  join(2);
  ASSERT_EQ(peers[1].grants.size(), 1U);
  EXPECT_EQ(peers[1].grants[0].pass_first, 48U);
  EXPECT_EQ(peers[1].grants[0].count, 75U);
  EXPECT_EQ(coordinator->steps(), 3U + 5 + 3 * 5);
}

TEST_F(CoordinatorTest, StopEndsAfterTheOpenStep) {
  options.test_samples = 10;
  make();
  Peer& a = join(1);
  coordinator->stop(now);
  EXPECT_EQ(output.times_finished, 0);
  work(a);
  EXPECT_EQ(output.times_finished, 1);
  EXPECT_EQ(coordinator->server().version(), 1u);
  EXPECT_EQ(output.closed.at(1).code, "lost");
}

TEST_F(CoordinatorTest, StopWithoutAnOpenStepEndsAtOnce) {
  make();
  open(1);
  coordinator->stop(now);
  EXPECT_EQ(output.times_finished, 1);
  EXPECT_EQ(output.closed.at(1).code, "lost");
}

TEST_F(CoordinatorTest, StopWaitsForAStepThatIsHalfApplied) {
  make();
  Peer& a = join(1);
  const wire::Grant grant = begun(a);
  push(a, grant, 0);
  coordinator->session_closed(1, "gone", now);
  coordinator->stop(now);
  EXPECT_EQ(output.times_finished, 0) << "the state between two versions cannot be saved";
  EXPECT_NE(coordinator->waiting_for().find("half applied"), std::string::npos);
  output.closed[1] = {};
  Peer& b = join(2);
  work(b);
  EXPECT_EQ(output.times_finished, 1);
  expect_exact(1);
}

TEST_F(CoordinatorTest, StopDoesNotWaitForAStepWithoutWorkers) {
  make();
  join(1);
  coordinator->session_closed(1, "gone", now);
  EXPECT_EQ(coordinator->waiting_for(), "waiting for a worker: nobody is left to compute the open step");
  coordinator->stop(now);
  EXPECT_EQ(output.times_finished, 1);
}

}  // namespace
}  // namespace motley::engine
