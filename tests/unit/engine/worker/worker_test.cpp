#include "engine/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "session.h"

namespace motley::engine {
namespace {

using std::chrono::milliseconds;

TEST_F(WorkerTest, JoinsAndReportsReadyAndSynced) {
  join(4);
  ASSERT_EQ(out.sent<wire::Ready>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Ready>()[0].layout.size(), layout.entries().size());
  EXPECT_EQ(out.sent<wire::Ready>()[0].train_fingerprint, "train");
  EXPECT_EQ(out.worker_number, 3U);
  ASSERT_EQ(out.sent<wire::Synced>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Synced>()[0].version, 4U);
  EXPECT_EQ(out.last_fence, kFence);
  EXPECT_EQ(worker.state(), cluster::WorkerState::member);
}

TEST_F(WorkerTest, TellsWhatNumbersOnTheWireCostItWhereItKnows) {
  const plan::EndCost cost{.sent = 1e-9, .received = 2e-9, .encode = {0, 3e-9, 4e-9, 5e-9}};
  worker.knows_wire(cost);
  join(0);
  EXPECT_EQ(plan::heard(out.sent<wire::Ready>()[0].wire_seconds), cost);
}

TEST_F(WorkerTest, ATaskGetsTheWeightsOfItsVersionAndItsGradientGoesOutInSegments) {
  join(0);
  control(grant(0, 11));
  ASSERT_EQ(out.tasks.size(), 1U);
  const TaskOrder& task = out.tasks[0];
  EXPECT_EQ(task.first, 16U);
  EXPECT_EQ(task.pass_first, 100U);
  EXPECT_EQ(task.count, 8U);
  ASSERT_EQ(task.weights.size(), layout.chunks().size());
  for (const SharedBytes& weights : task.weights) EXPECT_EQ(weights.floats()[0], 0.5F);

  EXPECT_TRUE(out.arrived.empty());

  complete(task.number, 8);
  ASSERT_EQ(out.sent<wire::Begin>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Begin>()[0], (wire::Begin{pass_of(0), 11, 16, 8, 1.5, 2.5}));
  ASSERT_EQ(out.sent<wire::Finish>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Finish>()[0].compute_seconds, 0.25);
  std::size_t bytes = 0;
  for (const wire::Frame& frame : out.gradients) {
    EXPECT_LE(frame.body.size(), wire::kBodyBytesMax);
    EXPECT_EQ(frame.header.subject, 11U);
    EXPECT_EQ(frame.header.pass, pass_of(0));
    const bool statistics = layout.chunks()[frame.header.chunk].kind == ChunkKind::statistics;
    EXPECT_EQ(frame.header.type, statistics ? wire::FrameType::statistic : wire::FrameType::gradient);
    bytes += frame.body.size();
  }
  EXPECT_EQ(bytes, layout.flat_elements() * sizeof(float));
}

TEST_F(WorkerTest, AChunkOfMoreThanAFrameTravelsInPieces) {
  layout = *Layout::make({tensor("weight", {10}), tensor("norm.mean", {150000}, TensorKind::running_mean),
                          tensor("norm.var", {150000}, TensorKind::running_var)});
  join(0);
  control(grant(0, 11));
  complete(out.tasks.at(0).number, 8);
  EXPECT_EQ(out.gradients.size(), 3U);
  std::size_t bytes = 0;
  for (const wire::Frame& frame : out.gradients) {
    EXPECT_LE(frame.body.size(), wire::kBodyBytesMax);
    bytes += frame.body.size();
  }
  EXPECT_EQ(bytes, layout.flat_elements() * sizeof(float));
}

TEST_F(WorkerTest, FramesOfAnotherFenceAreDropped) {
  join(0);
  control(grant(0, 11), kFence - 1);
  EXPECT_TRUE(out.tasks.empty());
  control(wire::Bye{"done", {}, {}, {}}, kFence + 1);
  EXPECT_TRUE(out.ends.empty());
}

TEST_F(WorkerTest, WrongSizesEndTheSession) {
  join(0);
  wire::Frame frame = segment(1, 0, 0, 64);
  frame.header.total += 4;
  worker.frame(frame, now);
  ASSERT_EQ(out.ends.size(), 1U);
  EXPECT_TRUE(out.ends[0].first);
  EXPECT_THAT(out.ends[0].second, testing::HasSubstr("chunk 0 should be"));
}

TEST_F(WorkerTest, UnknownChunkEndsTheSession) {
  join(0);
  wire::Frame frame = segment(1, 0, 0, 64);
  frame.header.chunk = chunks();
  worker.frame(frame, now);
  ASSERT_EQ(out.ends.size(), 1U);
}

TEST_F(WorkerTest, GarbageOnTheControlLaneEndsTheSession) {
  join(0);
  wire::FrameHeader header;
  header.fence = kFence;
  const std::vector<std::byte> garbage(7, std::byte{0xFF});
  worker.frame(wire::seal(header, SharedBytes::copy_of(garbage)), now);
  ASSERT_EQ(out.ends.size(), 1U);
  EXPECT_TRUE(out.ends[0].first);
  worker.disconnected("closed", now);
  EXPECT_EQ(out.ends.size(), 1U) << "once a session";
}

TEST_F(WorkerTest, WhatAScriptGivesIsPutTogether) {
  worker.connected(now);
  std::vector<std::byte> file(1000);
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::byte>(i);
  const SharedBytes whole = SharedBytes::copy_of(file);
  const auto blob = [&](std::size_t offset, std::size_t count) {
    wire::FrameHeader header;
    header.type = wire::FrameType::blob;
    header.offset = static_cast<std::uint32_t>(offset);
    header.total = 1000;
    worker.frame(wire::seal(header, whole.slice(offset, count)), now);
  };
  blob(600, 400);
  control(wire::RunSpec{"[train]", std::string(64, 'a'), 1000}, 0);
  EXPECT_EQ(out.prepared, 0);
  blob(0, 600);
  ASSERT_EQ(out.prepared, 1);
  EXPECT_EQ(std::memcmp(out.model.bytes().data(), file.data(), file.size()), 0);
  blob(0, 600);
  EXPECT_EQ(out.prepared, 1);
}

TEST_F(WorkerTest, WhatAScriptGivesOfAnotherSizeOrTooLargeIsRefused) {
  worker.connected(now);
  control(wire::RunSpec{"", "", wire::kBlobBytesMax}, 0);
  ASSERT_EQ(out.ends.size(), 1U);
  worker.connected(now);
  control(wire::RunSpec{"", "", 100}, 0);
  wire::FrameHeader header;
  header.type = wire::FrameType::blob;
  header.total = 101;
  worker.frame(wire::seal(header, filled(10, 1.0F)), now);
  EXPECT_EQ(out.ends.size(), 2U);
  EXPECT_EQ(out.prepared, 0);
}

TEST_F(WorkerTest, AModelThatCannotBeUsedIsSaid) {
  worker.connected(now);
  control(wire::RunSpec{"[train]", "", 0}, 0);
  worker.prepare_failed({ErrorCode::input, "no such directory", "copy it"}, now);
  ASSERT_EQ(out.sent<wire::Bye>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Bye>()[0].code, "data");
  ASSERT_EQ(out.ends.size(), 1U);
  EXPECT_FALSE(out.ends[0].first);
  EXPECT_EQ(out.ends[0].second, "no such directory");
}

TEST_F(WorkerTest, ACoordinatorThatSaysNothingIsLeft) {
  join(0);
  const Time last = now + Timeouts{}.silence + std::chrono::milliseconds(100);
  for (; now <= last && out.ends.empty(); now += std::chrono::milliseconds(50)) worker.tick(now);
  ASSERT_EQ(out.ends.size(), 1U);
  EXPECT_TRUE(out.ends[0].first);
  EXPECT_THAT(out.ends[0].second, testing::HasSubstr("nothing was heard from the coordinator for"));
}

TEST_F(WorkerTest, NothingOfATaskOfAnOldSessionIsSent) {
  join(0);
  control(grant(0, 11));
  worker.disconnected("reset", now);
  EXPECT_EQ(out.limits.back(), (std::pair<std::uint64_t, std::uint64_t>{1, 0}));
  worker.connected(now);
  control(wire::RunSpec{"[train]", "", 0}, 0);
  EXPECT_EQ(out.prepared, 1) << "not before the task ended";
  complete(1, 8);
  EXPECT_EQ(out.prepared, 2);
  EXPECT_TRUE(out.gradients.empty());
  EXPECT_TRUE(out.sent<wire::Finish>().empty());
}

TEST_F(WorkerTest, AnIncompleteGradientIsAFailure) {
  join(0);
  control(grant(0, 11));
  worker.task_begin(1, 8, {8, 1}, now);
  worker.task_finished(1, Outcome{8, 8, 1, 0}, 0.1, 0, now);
  ASSERT_EQ(out.sent<wire::Failed>().size(), 1U);
  EXPECT_THAT(out.sent<wire::Failed>()[0].message, testing::HasSubstr("missing"));
}

TEST_F(WorkerTest, AnEvaluationAnswersWithFinishAlone) {
  join(2);
  control(wire::Grant{std::uint64_t{2} << 56 | 2, 5, 2, 0, 0, 0, 10});
  ASSERT_EQ(out.tasks.size(), 1U);
  EXPECT_EQ(out.tasks[0].kind, PassKind::evaluate);
  worker.task_finished(1, Outcome{10, 10, 3, 7}, 0.1, 0, now);
  ASSERT_EQ(out.sent<wire::Finish>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Finish>()[0].correct, 7U);
  EXPECT_TRUE(out.gradients.empty());
}

TEST_F(WorkerTest, HeartbeatsEchoAndLeavingEndsWell) {
  join(0);
  control(wire::Heartbeat{1234, 0});
  now += milliseconds(600);
  worker.tick(now);
  ASSERT_FALSE(out.sent<wire::Heartbeat>().empty());
  EXPECT_EQ(out.sent<wire::Heartbeat>().back().echo_ns, 1234U);
  worker.leave(now);
  EXPECT_EQ(out.sent<wire::Yield>().size(), 1U);
  control(wire::Bye{"leave", {}, {}, {}});
  ASSERT_EQ(out.ends.size(), 1U);
  EXPECT_FALSE(out.ends[0].first);
  EXPECT_TRUE(out.ends[0].second.empty());
}

TEST_F(WorkerTest, ARefusalIsExplained) {
  prepare();
  control(wire::Bye{"model", "[64, 3]", "[64, 1]", "use the same recipe"}, 0);
  ASSERT_EQ(out.ends.size(), 1U);
  EXPECT_FALSE(out.ends[0].first);
  EXPECT_THAT(out.ends[0].second, testing::HasSubstr("expected [64, 3], found [64, 1]"));
}

}  // namespace
}  // namespace motley::engine
