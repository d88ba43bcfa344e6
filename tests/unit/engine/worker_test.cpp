#include "engine/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "wire/limits.h"

namespace motley::engine {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kFence = std::uint64_t{1} << 32 | 9;
constexpr std::uint64_t kRun = 77;
constexpr std::uint64_t pass_of(std::uint64_t step) { return std::uint64_t{1} << 56 | step; }

struct Recorder final : WorkerOutput {
  void send(wire::Frame frame, Lane lane) override {
    EXPECT_TRUE(wire::verify_body(frame.header, frame.body.bytes()).ok());
    EXPECT_EQ(lane, frame.header.type == wire::FrameType::control ? Lane::control : Lane::gradients);
    if (frame.header.type == wire::FrameType::control) {
      Result<wire::Message> message = wire::decode(frame.body.bytes());
      ASSERT_TRUE(message.ok());
      messages.push_back(*message);
    } else {
      gradients.push_back(frame);
    }
    last_fence = frame.header.fence;
  }
  void prepare(const wire::RunSpec& spec, const SharedBytes& model_file) override {
    ++prepared;
    config = spec.config;
    model = model_file;
  }
  void start_task(TaskOrder order) override { tasks.push_back(std::move(order)); }
  void weights_arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) override {
    arrived.emplace_back(number, chunk, weights.floats().front());
  }
  void limit_task(std::uint64_t number, std::uint64_t count) override { limits.emplace_back(number, count); }
  void finish_early(std::uint64_t number) override { finished_early.push_back(number); }
  void admitted(std::uint64_t worker) override { worker_number = worker; }
  void step_done(std::uint64_t version, std::uint64_t samples) override { steps.emplace_back(version, samples); }
  void disconnect(bool reconnect, const Error& why) override { ends.emplace_back(reconnect, why.message); }

  template <class T>
  std::vector<T> sent() const {
    std::vector<T> found;
    for (const wire::Message& message : messages) {
      if (const T* one = std::get_if<T>(&message)) found.push_back(*one);
    }
    return found;
  }

  std::vector<wire::Message> messages;
  std::vector<wire::Frame> gradients;
  std::vector<TaskOrder> tasks;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> limits, steps;
  std::vector<std::tuple<std::uint64_t, ChunkId, float>> arrived;
  std::vector<std::pair<bool, std::string>> ends;
  std::vector<std::uint64_t> finished_early;
  std::string config;
  SharedBytes model;
  std::uint64_t worker_number = 0, last_fence = 0;
  int prepared = 0;
};

LayoutEntry tensor(std::string name, std::vector<std::int64_t> shape, TensorKind kind = TensorKind::trained) {
  LayoutEntry entry;
  entry.name = std::move(name);
  entry.shape = std::move(shape);
  entry.kind = kind;
  return entry;
}

Layout test_layout() {
  Result<Layout> layout = Layout::make({
      tensor("big", {300, 400}),  // more than one segment
      tensor("bias", {10}),
      tensor("norm.mean", {10}, TensorKind::running_mean),
      tensor("norm.var", {10}, TensorKind::running_var),
  });
  EXPECT_TRUE(layout.ok());
  return *layout;
}

class WorkerTest : public testing::Test {
 protected:
  void control(const wire::Message& message, std::uint64_t fence = kFence) {
    wire::FrameHeader header;
    header.type = wire::FrameType::control;
    header.run = kRun;
    header.fence = fence;
    worker.frame(wire::seal(header, wire::encode(message)), now);
  }
  static SharedBytes filled(std::size_t elements, float value) {
    const std::vector<float> values(elements, value);
    return SharedBytes::copy_of(std::as_bytes(std::span(values)));
  }
  wire::Frame segment(std::uint64_t version, ChunkId chunk, std::size_t offset, std::size_t count,
                      std::uint64_t fence = kFence) const {
    const SharedBytes all = filled(layout.chunks()[chunk].elements, static_cast<float>(version) + 0.5F);
    wire::FrameHeader header;
    header.type = wire::FrameType::weights;
    header.run = kRun;
    header.fence = fence;
    header.version = version;
    header.chunk = chunk;
    header.offset = static_cast<std::uint32_t>(offset);
    header.total = static_cast<std::uint32_t>(all.size());
    return wire::seal(header, all.slice(offset, count));
  }
  std::size_t chunk_bytes(ChunkId chunk) const { return std::size_t{layout.chunks()[chunk].elements} * 4; }
  ChunkId chunks() const { return static_cast<ChunkId>(layout.chunks().size()); }
  void give_chunk(std::uint64_t version, ChunkId chunk, std::uint64_t fence = kFence) {
    for (std::size_t at = 0; at < chunk_bytes(chunk); at += wire::kSegmentBytesMax) {
      worker.frame(segment(version, chunk, at, std::min(wire::kSegmentBytesMax, chunk_bytes(chunk) - at), fence), now);
    }
  }
  void give_version(std::uint64_t version) {
    for (ChunkId chunk = chunks(); chunk-- > 0;) give_chunk(version, chunk);
  }
  void prepare() {
    worker.connected(now);
    control(wire::RunSpec{"[train]", "", 0}, 0);
    worker.prepared(layout, "train", "test", std::nullopt, now);
  }
  void join(std::uint64_t version) {
    prepare();
    control(wire::Admitted{3, kFence});
    give_version(version);
  }
  static wire::Grant grant(std::uint64_t step, std::uint64_t lease, std::uint64_t count = 8) {
    return {pass_of(step), lease, step, 0, 100, 16, count};
  }
  void complete(std::uint64_t number, std::uint64_t count) {
    worker.task_begin(number, count, 1.5, 2.5, now);
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
      worker.task_chunk(number, chunk, filled(layout.chunks()[chunk].elements, 3.0F), now);
    }
    worker.task_finished(number, Outcome{count, 1.5, 2.5, 0}, 0.25, 0, now);
  }

  Layout layout = test_layout();
  Recorder out;
  Worker worker{WorkerOptions{}, out};
  Time now{std::chrono::seconds(1)};
};

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

TEST_F(WorkerTest, WeightsBeforeAdmissionCountIfTheFenceIsRight) {
  prepare();
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) give_chunk(2, chunk, kFence + 1);  // of an older session
  give_chunk(3, 0);
  control(wire::Admitted{3, kFence});
  EXPECT_TRUE(out.sent<wire::Synced>().empty());
  for (ChunkId chunk = 1; chunk < chunks(); ++chunk) give_chunk(3, chunk);
  ASSERT_EQ(out.sent<wire::Synced>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Synced>()[0].version, 3U);
}

TEST_F(WorkerTest, ATaskGetsWeightsThatAreOnTheirWayChunkByChunk) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 8});
  give_chunk(1, 1);
  control(wire::PassClosed{pass_of(0), 1});
  control(grant(1, 11));
  ASSERT_EQ(out.tasks.size(), 1U);
  EXPECT_EQ(out.tasks[0].version, 1U);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) EXPECT_EQ(out.tasks[0].weights[chunk].empty(), chunk != 1);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
    give_chunk(1, chunk);
    give_chunk(1, chunk);  // what comes twice is passed on once
  }
  ASSERT_EQ(out.arrived.size(), chunks() - 1);
  for (const auto& [task, chunk, first] : out.arrived) {
    EXPECT_EQ(task, out.tasks[0].number);
    EXPECT_EQ(first, 1.5F);
  }
  complete(out.tasks[0].number, 8);
  ASSERT_EQ(out.sent<wire::Finish>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Finish>()[0].count, 8U);
}

TEST_F(WorkerTest, WaitingForWeightsIsNoComputing) {
  join(0);
  control(grant(0, 11));
  worker.task_begin(1, 8, 1, 1, now);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    worker.task_chunk(1, chunk, filled(layout.chunks()[chunk].elements, 3.0F), now);
  worker.task_finished(1, Outcome{8, 1, 1, 0}, 0.25, 0.5, now);
  ASSERT_EQ(out.sent<wire::Finish>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Finish>()[0].compute_seconds, 0.25);
  EXPECT_EQ(out.sent<wire::Finish>()[0].wait_seconds, 1.5) << "a second without a task, half a second in it";
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
    EXPECT_LE(frame.body.size(), wire::kSegmentBytesMax);
    EXPECT_EQ(frame.header.subject, 11U);
    EXPECT_EQ(frame.header.pass, pass_of(0));
    const bool statistics = layout.chunks()[frame.header.chunk].kind == ChunkKind::statistics;
    EXPECT_EQ(frame.header.type, statistics ? wire::FrameType::statistic : wire::FrameType::gradient);
    bytes += frame.body.size();
  }
  EXPECT_EQ(bytes, layout.flat_elements() * sizeof(float));
}

TEST_F(WorkerTest, MovesOnWhenTheWordIsThere) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 64});
  control(grant(1, 12));
  give_chunk(1, 0);
  EXPECT_TRUE(out.tasks.empty());
  control(wire::PassClosed{pass_of(0), 1});
  ASSERT_EQ(out.tasks.size(), 1U);
  EXPECT_EQ(out.tasks[0].weights[0].floats()[0], 1.5F);
  give_version(1);
  EXPECT_EQ(out.arrived.size(), chunks() - 1);
  EXPECT_EQ(out.sent<wire::Synced>().size(), 1U) << "only the first, as a joiner";
}

TEST_F(WorkerTest, TheNextVersionIsStagedWhileThePassIsOpen) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 64});
  give_version(1);
  control(grant(0, 12));
  ASSERT_EQ(out.tasks.size(), 1U);
  EXPECT_EQ(out.tasks[0].weights[0].floats()[0], 0.5F) << "no worker computes at mixed versions";
  complete(1, 8);
  control(wire::PassClosed{pass_of(0), 1});
  ASSERT_EQ(out.steps.size(), 1U);
  EXPECT_EQ(out.steps[0], (std::pair<std::uint64_t, std::uint64_t>{1, 8}));
  control(grant(1, 13));
  EXPECT_EQ(out.tasks.back().weights[0].floats()[0], 1.5F);
}

TEST_F(WorkerTest, SegmentsInAnyOrderAndTwice) {
  prepare();
  control(wire::Admitted{3, kFence});
  const std::size_t bytes = chunk_bytes(0);
  for (ChunkId chunk = 1; chunk < chunks(); ++chunk) give_chunk(0, chunk);
  const std::size_t third = bytes / 12 * 4;
  worker.frame(segment(0, 0, 2 * third, bytes - 2 * third), now);
  worker.frame(segment(0, 0, 2 * third, bytes - 2 * third), now);
  worker.frame(segment(0, 0, 0, third), now);
  worker.frame(segment(0, 0, 0, third), now);
  EXPECT_TRUE(out.sent<wire::Synced>().empty());
  worker.frame(segment(0, 0, third - 4, third + 8), now);  // overlaps both
  EXPECT_EQ(out.sent<wire::Synced>().size(), 1U);
}

TEST_F(WorkerTest, AVersionThatWasSkippedMakesWayForTheNewest) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 64});
  give_chunk(1, 0);
  control(wire::PassClosed{pass_of(0), 1});
  control(wire::PassClosed{pass_of(1), 2});
  give_version(2);
  ASSERT_EQ(out.sent<wire::Synced>().size(), 2U);
  EXPECT_EQ(out.sent<wire::Synced>()[1].version, 2U);
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

TEST_F(WorkerTest, TheModelFileIsPutTogether) {
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

TEST_F(WorkerTest, AModelFileOfAnotherSizeOrTooLargeIsRefused) {
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
  worker.task_begin(1, 8, 8, 1, now);
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
