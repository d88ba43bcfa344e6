// What a worker sends when it is asked for a codec, and what it keeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "codec/codec.h"
#include "fixture.h"

namespace motley::engine {
namespace {

using codec::CodecId;

struct KeepsGradients final : QuietOutput {
  void send(wire::Frame frame, Lane) override {
    if (frame.header.type != wire::FrameType::control) gradients.push_back(frame);
  }
  void start_task(TaskOrder order) override { task = order.number; }

  std::vector<wire::Frame> gradients;
  std::uint64_t task = 0;
};

class WorkerCodec : public testing::Test {
 protected:
  void control(const wire::Message& message) { worker.frame(control_frame(message, fence), now); }
  void join(std::uint32_t incarnation, std::uint32_t session) {
    fence = 0;
    worker.connected(now);
    control(wire::RunSpec{"[train]", "", 0});
    worker.prepared(layout, {"train", "test"}, {.train = 512, .test = 64}, std::nullopt, now);
    const std::uint64_t given = std::uint64_t{incarnation} << 32 | session;
    control(wire::Admitted{3, given});
    fence = given;
    weights(0);
  }
  void weights(std::uint64_t version) {
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
      const std::vector<float> zeros(layout.chunks()[chunk].elements);
      const wire::FrameHeader header = weights_header(version, chunk, fence);
      worker.frame(wire::seal(header, SharedBytes::copy_of(std::as_bytes(std::span(zeros)))), now);
    }
  }
  /// The frames of a lease whose gradient is `values` in its large tensor.
  std::vector<wire::Frame> compute(std::uint64_t lease, CodecId codec, bool feedback) {
    control(wire::Grant{.pass = pass_of(0),
                        .lease = lease,
                        .count = 8,
                        .codec = static_cast<std::uint32_t>(codec),
                        .feedback = feedback});
    out.gradients.clear();
    worker.task_begin(out.task, 8, {8, 1}, now);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk)
      worker.task_chunk(out.task, chunk, SharedBytes::copy_of(std::as_bytes(std::span(values[chunk]))), now);
    worker.task_finished(out.task, Outcome{8, 8, 1, 0}, 0.25, 0, now);
    return out.gradients;
  }
  static std::vector<std::byte> encoded(CodecId codec, const std::vector<float>& of, std::span<const float> residual,
                                        std::vector<float>& left) {
    std::vector<std::byte> body(codec::encoded_bytes(codec, of.size()));
    left.resize(of.size());
    codec::encode(codec, of, residual, body, left);
    return body;
  }
  static void expect_body(const wire::Frame& frame, const std::vector<std::byte>& body) {
    EXPECT_EQ(frame.header.total, body.size());
    EXPECT_TRUE(std::ranges::equal(frame.body.bytes(), body));
  }

  Layout layout = two_tensors();
  std::vector<std::vector<float>> values = ramps(layout);
  KeepsGradients out;
  Worker worker{WorkerOptions{}, out};
  Time now{std::chrono::seconds(1)};
  std::uint64_t fence = 0;
};

TEST_F(WorkerCodec, LargeTensorsAreEncodedAndSmallOnesAreNot) {
  join(1, 1);
  const auto frames = compute(5, CodecId::int8, true);
  ASSERT_EQ(frames.size(), 2U);
  std::vector<float> left;
  EXPECT_EQ(frames[0].header.codec, CodecId::int8);
  expect_body(frames[0], encoded(CodecId::int8, values[0], {}, left));
  EXPECT_EQ(frames[1].header.codec, CodecId::fp32);
  EXPECT_EQ(frames[1].header.total, values[1].size() * sizeof(float));
}

TEST_F(WorkerCodec, WhatWasLeftGoesIntoTheNextContributionOnceItCounts) {
  join(1, 1);
  std::vector<float> left, more;
  compute(5, CodecId::int4, true);
  encoded(CodecId::int4, values[0], {}, left);
  expect_body(compute(6, CodecId::int4, true)[0], encoded(CodecId::int4, values[0], {}, more));  // nothing was said
  control(wire::Taken{pass_of(0), 6, {1}});
  expect_body(compute(7, CodecId::int4, true)[0], encoded(CodecId::int4, values[0], {}, more));  // it did not count
  control(wire::Taken{pass_of(0), 7, {}});
  expect_body(compute(8, CodecId::bf16, false)[0], encoded(CodecId::bf16, values[0], {}, more));
  control(wire::Taken{pass_of(0), 8, {}});
  expect_body(compute(9, CodecId::int4, true)[0], encoded(CodecId::int4, values[0], left, more));
}

TEST_F(WorkerCodec, ANewSessionKeepsItAndANewIncarnationDoesNot) {
  join(1, 1);
  compute(5, CodecId::int8, true);
  control(wire::Taken{pass_of(0), 5, {}});
  worker.disconnected("reset", now);
  join(1, 2);
  std::vector<float> left, more;
  encoded(CodecId::int8, values[0], {}, left);
  expect_body(compute(6, CodecId::int8, true)[0], encoded(CodecId::int8, values[0], left, more));
  worker.disconnected("reset", now);
  join(2, 1);
  expect_body(compute(5, CodecId::int8, true)[0], encoded(CodecId::int8, values[0], {}, more));
}

TEST_F(WorkerCodec, WhatCountedBeforeAConnectionBrokeMayBeSaidInTheNextSession) {
  join(1, 1);
  compute(5, CodecId::int8, true);
  worker.disconnected("reset", now);
  join(1, 2);
  control(wire::Taken{pass_of(0), 5, {}});
  std::vector<float> left, more;
  encoded(CodecId::int8, values[0], {}, left);
  expect_body(compute(6, CodecId::int8, true)[0], encoded(CodecId::int8, values[0], left, more));
}

TEST_F(WorkerCodec, AnUnknownCodecEndsTheSession) {
  join(1, 1);
  control(wire::Grant{.pass = pass_of(0), .lease = 5, .count = 8, .codec = 4});
  EXPECT_EQ(out.ended, "a codec is 0 to 3; found 4");
}

}  // namespace
}  // namespace motley::engine
