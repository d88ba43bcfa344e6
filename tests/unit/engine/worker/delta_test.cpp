// What a worker makes of deltas, and what it does when they lead elsewhere than the coordinator says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/xxh64.h"
#include "codec/delta.h"
#include "fixture.h"

namespace motley::engine {
namespace {

using codec::CodecId;

struct KeepsRefreshes final : QuietOutput {
  void send(wire::Frame frame, Lane) override {
    if (frame.header.type != wire::FrameType::control) return;
    const auto message = wire::decode(frame.body.bytes());
    if (const auto* refresh = std::get_if<wire::Refresh>(&*message)) refreshes.push_back(refresh->version);
    if (const auto* synced = std::get_if<wire::Synced>(&*message)) syncs.push_back(synced->version);
  }
  void start_task(TaskOrder order) override { tasks.push_back(std::move(order)); }

  std::vector<TaskOrder> tasks;
  std::vector<std::uint64_t> refreshes, syncs;
};

class WorkerDelta : public testing::Test {
 protected:
  WorkerDelta() {
    worker.connected(now);
    control(wire::RunSpec{"[train]", "", 0}, 0);
    worker.prepared(layout, {"train", "test"}, {.train = 512, .test = 64}, std::nullopt, now);
    control(wire::Admitted{3, kFence}, 0);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) whole(0, chunk);
    open(0);
  }
  void control(const wire::Message& message, std::uint64_t fence = kFence) {
    worker.frame(control_frame(message, fence), now);
  }
  void open(std::uint64_t version) {
    control(wire::PassOpened{pass_of(version), version, 0, 0, 8});
    control(wire::Grant{.pass = pass_of(version), .lease = version + 1, .version = version, .count = 8});
  }
  void whole(std::uint64_t version, ChunkId chunk) {
    worker.frame(
        wire::seal(weights_header(version, chunk, kFence), SharedBytes::copy_of(std::as_bytes(std::span(held[chunk])))),
        now);
  }
  /// The delta to the next version of the large chunk.
  wire::Frame next_delta(std::uint64_t version) {
    for (float& value : exact[0]) value += 0.01F;
    std::vector<float> moved(held[0].size());
    std::vector<std::byte> body(codec::encoded_bytes(CodecId::int8, moved.size()));
    EXPECT_TRUE(codec::encode_delta(CodecId::int8, exact[0], held[0], body, moved));
    held[0] = moved;
    wire::FrameHeader header = weights_header(version, 0, kFence);
    header.codec = CodecId::int8;
    header.subject = xxh64(std::as_bytes(std::span(moved)));
    return wire::seal(header, SharedBytes::copy_of(body));
  }
  void close(std::uint64_t version) {
    control(wire::PassClosed{pass_of(version - 1), version});
    worker.task_finished(out.tasks.back().number, Outcome{}, 0, 0, now);
    open(version);
  }
  void expect_task(std::uint64_t version) {
    ASSERT_FALSE(out.tasks.empty());
    ASSERT_EQ(out.tasks.back().version, version);
    for (ChunkId chunk = 0; chunk < held.size(); ++chunk)
      EXPECT_TRUE(std::ranges::equal(out.tasks.back().weights[chunk].bytes(), std::as_bytes(std::span(held[chunk]))));
  }

  Layout layout = two_tensors();
  std::vector<std::vector<float>> exact = ramps(layout), held = exact;
  KeepsRefreshes out;
  Worker worker{WorkerOptions{}, out};
  Time now{std::chrono::seconds(1)};
};

TEST_F(WorkerDelta, MovesWhatItHoldsFromVersionToVersion) {
  expect_task(0);
  for (std::uint64_t version = 1; version < 5; ++version) {
    const std::vector<float> before = held[0];
    worker.frame(next_delta(version), now);
    const auto in_use = out.tasks.back().weights[0].bytes();
    EXPECT_TRUE(std::ranges::equal(in_use, std::as_bytes(std::span(before)))) << "a task keeps its version";
    whole(version, 1);
    close(version);
    expect_task(version);
  }
  EXPECT_TRUE(out.refreshes.empty());
}

TEST_F(WorkerDelta, SegmentsMayComeInAnyOrderAndTwice) {
  const wire::Frame delta = next_delta(1);
  whole(1, 1);
  const std::size_t cut = 4001;
  for (const std::size_t offset : {cut, std::size_t{0}, cut}) {
    wire::FrameHeader header = delta.header;
    header.offset = static_cast<std::uint32_t>(offset);
    worker.frame(wire::seal(header, delta.body.slice(offset, offset == 0 ? cut : delta.body.size() - cut)), now);
  }
  close(1);
  expect_task(1);
}

TEST_F(WorkerDelta, AChunkMayComeWholeAfterAPartOfItsDelta) {
  const wire::Frame delta = next_delta(1);
  worker.frame(wire::seal(delta.header, delta.body.slice(0, 100)), now);
  whole(1, 0);
  whole(1, 1);
  close(1);
  expect_task(1);
}

TEST_F(WorkerDelta, AsksForEverythingWhenItLeadsElsewhere) {
  wire::Frame delta = next_delta(1);
  delta.header.subject ^= 1;
  worker.frame(delta, now);
  EXPECT_THAT(out.refreshes, testing::ElementsAre(1));
  EXPECT_EQ(worker.state(), cluster::WorkerState::syncing);
  out.syncs.clear();
  whole(1, 0);
  whole(1, 1);
  EXPECT_THAT(out.syncs, testing::ElementsAre(1));
  close(1);
  expect_task(1);
  EXPECT_TRUE(out.ended.empty());
}

TEST_F(WorkerDelta, IgnoresADeltaFromAVersionItDoesNotHold) {
  next_delta(1);
  worker.frame(next_delta(2), now);
  EXPECT_TRUE(out.ended.empty());
  whole(2, 0);
  whole(2, 1);
  close(2);
  expect_task(2);
}

TEST_F(WorkerDelta, WhatNoEncoderWritesEndsTheSession) {
  wire::Frame delta = next_delta(1);
  std::vector<std::byte> body(delta.body.bytes().begin(), delta.body.bytes().end());
  body[0] = std::byte{0xFF};  // the scale of what is not finite
  worker.frame(wire::seal(delta.header, SharedBytes::copy_of(body)), now);
  EXPECT_THAT(out.ended, testing::HasSubstr("the delta of chunk 0 to version 1 has a scale or number"));
}

TEST_F(WorkerDelta, OfASmallTensorEndsTheSession) {
  wire::FrameHeader header = weights_header(1, 1, kFence);
  header.codec = CodecId::int8;
  const std::size_t elements = layout.chunks()[1].elements;
  const std::vector<std::byte> body(codec::encoded_bytes(CodecId::int8, elements));
  worker.frame(wire::seal(header, SharedBytes::copy_of(body)), now);
  EXPECT_THAT(out.ended, testing::HasSubstr("bytes of fp32; found"));
}

TEST_F(WorkerDelta, OfAnotherLengthEndsTheSession) {
  wire::FrameHeader header = weights_header(1, 0, kFence);
  header.codec = CodecId::int4;
  worker.frame(wire::seal(header, SharedBytes::copy_of(std::vector<std::byte>(100))), now);
  EXPECT_THAT(out.ended, testing::HasSubstr("or a delta; found 100 bytes of codec 3"));
}

}  // namespace
}  // namespace motley::engine
