#pragma once
// A worker in a session, and everything it says.

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/worker/worker.h"
#include "fixture.h"
#include "wire/limits.h"

namespace motley::engine {

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
  void prepare(const wire::RunSpec& spec, const SharedBytes& script_files) override {
    ++prepared;
    config = spec.config;
    model = script_files;
  }
  void start_task(TaskOrder order) override { tasks.push_back(std::move(order)); }
  void weights_arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) override {
    arrived.emplace_back(number, chunk, weights.floats().front());
  }
  void limit_task(std::uint64_t number, std::uint64_t count) override { limits.emplace_back(number, count); }
  void finish_early(std::uint64_t number) override { finished_early.push_back(number); }
  void make_steps(DelegatedSteps order) override { delegated.push_back(std::move(order)); }
  void end_steps(std::uint64_t number) override { cut.push_back(number); }
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
  std::vector<std::uint64_t> finished_early, cut;
  std::vector<DelegatedSteps> delegated;
  std::string config;
  SharedBytes model;
  std::uint64_t worker_number = 0, last_fence = 0;
  int prepared = 0;
};

inline LayoutEntry tensor(std::string name, std::vector<std::int64_t> shape, TensorKind kind = TensorKind::trained) {
  LayoutEntry entry;
  entry.name = std::move(name);
  entry.shape = std::move(shape);
  entry.kind = kind;
  return entry;
}

inline Layout session_layout() {
  Result<Layout> layout = Layout::make({
      tensor("big", {300, 400}),  // more than one chunk
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
    worker.frame(control_frame(message, fence), now);
  }
  static SharedBytes filled(std::size_t elements, float value) {
    const std::vector<float> values(elements, value);
    return SharedBytes::copy_of(std::as_bytes(std::span(values)));
  }
  wire::Frame segment(std::uint64_t version, ChunkId chunk, std::size_t offset, std::size_t count,
                      std::uint64_t fence = kFence) const {
    const SharedBytes all = filled(layout.chunks()[chunk].elements, static_cast<float>(version) + 0.5F);
    wire::FrameHeader header = weights_header(version, chunk, fence);
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
    worker.prepared(layout, {"train", "test"}, {.train = 512, .test = 64}, std::nullopt, now);
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
    worker.task_begin(number, count, {1.5, 2.5}, now);
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
      worker.task_chunk(number, chunk, filled(layout.chunks()[chunk].elements, 3.0F), now);
    }
    worker.task_finished(number, Outcome{count, 1.5, 2.5, 0}, 0.25, 0, now);
  }

  Layout layout = session_layout();
  Recorder out;
  Worker worker{WorkerOptions{}, out};
  Time now{std::chrono::seconds(1)};
};

}  // namespace motley::engine
