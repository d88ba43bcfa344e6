// Contributions that are not fp32: who is asked for which codec, what is summed, and what the worker is told of it.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "disturbed.h"

namespace motley::engine {
namespace {

using codec::CodecId;

std::vector<float> decoded(CodecId codec, const std::vector<float>& values) {
  std::vector<std::byte> body(codec::encoded_bytes(codec, values.size()));
  codec::encode(codec, values, {}, body, {});
  std::vector<float> result(values.size());
  codec::Encoded::make(codec, body, values.size())->decode(0, result);
  return result;
}

class CoordinatorCodec : public CoordinatorDisturbed {
 protected:
  CoordinatorCodec() { options.gradients = CodecId::int8; }

  [[nodiscard]] wire::Frame encoded_frame(const Peer& peer, const wire::Grant& grant, ChunkId chunk, CodecId codec,
                                          const std::vector<float>& values) const {
    wire::FrameHeader h = gradient_frame(peer, grant, chunk).header;
    std::vector<std::byte> body(codec::encoded_bytes(codec, values.size()));
    codec::encode(codec, values, {}, body, {});
    h.codec = codec;
    h.total = static_cast<std::uint32_t>(body.size());
    return wire::seal(h, SharedBytes::copy_of(body));
  }
  [[nodiscard]] std::vector<float> sum_of(const wire::Grant& grant, ChunkId chunk) const {
    return gradient_sum(layout.chunks()[chunk], grant.pass_first + grant.first, grant.count);
  }
  [[nodiscard]] bool large(ChunkId chunk) const { return layout.chunks()[chunk].kind == ChunkKind::large; }
  void push_encoded(Peer& peer, const wire::Grant& grant, ChunkId chunk, CodecId codec) {
    if (!large(chunk)) return push(peer, grant, chunk);
    deliver(peer, encoded_frame(peer, grant, chunk, codec, sum_of(grant, chunk)));
  }
  void compute_encoded(Peer& peer, const wire::Grant& grant) {
    begin(peer, grant);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk)
      push_encoded(peer, grant, chunk, static_cast<CodecId>(grant.codec));
    finish(peer, grant);
  }
};

TEST_F(CoordinatorCodec, WorkersOfOtherMachinesAreAskedForIt) {
  options.min_workers = 2;
  make();
  Peer& local = join(1, {}, true);
  Peer& remote = join(2);
  ASSERT_EQ(local.grants.size(), 1U);
  EXPECT_EQ(local.grants[0].codec, 0U);
  EXPECT_FALSE(local.grants[0].feedback);
  ASSERT_EQ(remote.grants.size(), 1U);
  EXPECT_EQ(remote.grants[0].codec, 2U);
  EXPECT_TRUE(remote.grants[0].feedback);
}

TEST_F(CoordinatorCodec, WhatIsGrantedAgainIsWithoutFeedback) {
  two();
  work(*b);
  lose(*a);
  ASSERT_EQ(b->grants.size(), 1U);
  EXPECT_EQ(b->grants[0].codec, 1U);
  EXPECT_FALSE(b->grants[0].feedback);
}

TEST_F(CoordinatorCodec, SumsWhatItDecodesInOrderOfPositions) {
  two();
  const wire::Grant first = take(*a), second = take(*b);
  compute_encoded(*b, second);
  compute_encoded(*a, first);
  ASSERT_EQ(output.steps.size(), 1U);
  ps::Server server = test_server(layout);
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
    std::vector<float> x = sum_of(first, chunk), y = sum_of(second, chunk);
    if (large(chunk)) x = decoded(CodecId::int8, x), y = decoded(CodecId::int8, y);
    const std::array<std::span<const float>, 2> parts{x, y};
    server.reduce(chunk, parts, 16, 16);
    EXPECT_TRUE(std::ranges::equal(server.apply(chunk).bytes(), coordinator->server().weights(chunk).bytes())) << chunk;
  }
}

TEST_F(CoordinatorCodec, TakenNamesTheChunksThatOthersCovered) {
  two();
  compute_encoded(*b, take(*b));
  const wire::Grant late = begun(*a);
  push_encoded(*a, late, 0, CodecId::int8);
  push_encoded(*a, late, 1, CodecId::int8);
  pass_time(std::chrono::seconds(70), {a, b});
  ASSERT_EQ(b->grants.size(), 1U) << "it was overdue";
  compute_encoded(*b, take(*b));
  ASSERT_EQ(output.steps.size(), 1U);
  const auto taken = a->all<wire::Taken>();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(layout.chunks().size(), 5U);
  EXPECT_EQ(taken[0].discarded, std::vector<std::uint8_t>{0b11100});
  for (const wire::Taken& counted : b->all<wire::Taken>()) EXPECT_TRUE(counted.discarded.empty());
}

// Its error feedback has to know of the two chunks that count, or what they brought would come twice.
TEST_F(CoordinatorCodec, WhoComesBackHearsWhatCountsOfWhatItSent) {
  two();
  const wire::Grant broken = begun(*a);
  push_encoded(*a, broken, 1, CodecId::int8);
  push_encoded(*a, broken, 2, CodecId::int8);
  lose(*a);
  const auto taken = join(3, "w1").all<wire::Taken>();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].lease, broken.lease);
  EXPECT_EQ(taken[0].discarded, std::vector<std::uint8_t>{0b11001});
}

TEST_F(CoordinatorCodec, WhoComesBackHearsAgainThatItWasTaken) {
  two();
  const wire::Grant whole = take(*a);
  compute_encoded(*a, whole);
  ASSERT_EQ(a->all<wire::Taken>().size(), 1U);
  lose(*a);
  const auto taken = join(3, "w1").all<wire::Taken>();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].lease, whole.lease);
  EXPECT_TRUE(taken[0].discarded.empty());
}

TEST_F(CoordinatorCodec, WhoThrowsAwayItsWeightsHearsWhatCounts) {
  two();
  const wire::Grant begun = this->begun(*a);
  push_encoded(*a, begun, 0, CodecId::int8);
  say(*a, wire::Refresh{});
  const auto taken = a->all<wire::Taken>();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].lease, begun.lease);
  EXPECT_EQ(taken[0].discarded, std::vector<std::uint8_t>{0b11110});
}

TEST_F(CoordinatorCodec, WhatIsNotFiniteIsRefusedAsAWhole) {
  two();
  const wire::Grant grant = begun(*a);
  push_encoded(*a, grant, 0, CodecId::int8);
  std::vector<float> bad = sum_of(grant, 1);
  bad[7] = std::numeric_limits<float>::quiet_NaN();
  deliver(*a, encoded_frame(*a, grant, 1, CodecId::int8, bad));
  EXPECT_THAT(output.warnings, testing::SizeIs(1));
  const auto taken = a->all<wire::Taken>();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].discarded, std::vector<std::uint8_t>{0b11111});
}

TEST_F(CoordinatorCodec, CodecsNobodyAskedForBreakTheProtocol) {
  two();
  const wire::Grant grant = take(*a);
  deliver(*a, encoded_frame(*a, grant, 0, CodecId::int4, sum_of(grant, 0)));
  ASSERT_TRUE(output.closed.contains(a->session));
  EXPECT_EQ(output.closed[a->session].code, "protocol");
  const wire::Grant other = take(*b);
  deliver(*b, encoded_frame(*b, other, 3, CodecId::int8, sum_of(other, 3)));  // a small tensor
  ASSERT_TRUE(output.closed.contains(b->session));
  EXPECT_EQ(output.closed[b->session].expected, "a chunk of small tensors or statistics in fp32");
  EXPECT_EQ(output.closed[b->session].found, "one in int8");
}

TEST_F(CoordinatorCodec, WithoutTheOptionEverythingIsFp32) {
  options.gradients = CodecId::fp32;
  two();
  const wire::Grant grant = take(*a);
  EXPECT_EQ(grant.codec, 0U);
  deliver(*a, encoded_frame(*a, grant, 0, CodecId::int8, sum_of(grant, 0)));
  ASSERT_TRUE(output.closed.contains(a->session));
  EXPECT_EQ(output.closed[a->session].expected, "a chunk in fp32");
}

TEST_F(CoordinatorCodec, WithAutoWhoseLinkHoldsUpTheStepsGetsFewerBits) {
  options.gradients.reset();
  options.weights.reset();
  options.shares = {1, 1};  // nobody is left out, so that its codec alone decides
  options.min_workers = 2;
  options.steps = 80;
  make();
  Peer& local = join(1, {}, true);
  Peer& remote = join(2, "remote", false, 0.001);
  std::vector<std::uint32_t> codecs;
  while (output.times_finished == 0 && codecs.size() < 70) {
    ASSERT_EQ(remote.grants.size(), 1U);
    const wire::Grant grant = take(remote);
    codecs.push_back(grant.codec);
    EXPECT_EQ(grant.feedback, grant.codec != 0);
    work(local);
    pass_time(ms(600), {&local, &remote});  // of which it computes some milliseconds
    compute_encoded(remote, grant);
    collect();
  }
  EXPECT_EQ(codecs[0], 0U);
  EXPECT_EQ(codecs[1], 0U);
  EXPECT_EQ(codecs[5], static_cast<std::uint32_t>(CodecId::int4));
  EXPECT_EQ(codecs.back(), 0U) << "it saved nothing: the wait has another reason";
}

TEST_F(CoordinatorCodec, AChunkInTwoCodecsBreaksTheProtocol) {
  two();
  const wire::Grant grant = take(*a);
  const wire::Frame whole = encoded_frame(*a, grant, 0, CodecId::int8, sum_of(grant, 0));
  deliver(*a, wire::seal(whole.header, whole.body.slice(0, 100)));
  const wire::Frame exact = gradient_frame(*a, grant, 0);
  deliver(*a, wire::seal(exact.header, exact.body.slice(0, 100)));
  EXPECT_TRUE(output.closed.contains(a->session));
}

}  // namespace
}  // namespace motley::engine
