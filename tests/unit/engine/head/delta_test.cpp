// Weights that are not sent whole: who gets a delta, what it leads to, and who gets what they hold whole.

#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "base/xxh64.h"
#include "codec/delta.h"
#include "disturbed.h"
#include "engine/head/weights.h"

namespace motley::engine {
namespace {

using codec::CodecId;

bool same(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

class CoordinatorDelta : public CoordinatorDisturbed {
 protected:
  CoordinatorDelta() { options.weights = CodecId::int4; }

  [[nodiscard]] ChunkId chunks() const { return static_cast<ChunkId>(layout.chunks().size()); }
  [[nodiscard]] bool large(ChunkId chunk) const { return layout.chunks()[chunk].kind == ChunkKind::large; }
  /// The frame that brings a chunk of a version. REQUIRES one segment.
  static const wire::Frame* brings(const Peer& peer, std::uint64_t version, ChunkId chunk) {
    const wire::Frame* found = nullptr;
    for (const wire::Frame& frame : peer.frames)
      if (frame.header.version == version && frame.header.chunk == chunk) found = &frame;
    return found;
  }
  /// What a worker makes of the frames: checks that it is what the coordinator says.
  void follow(const Peer& peer, std::uint64_t version, std::vector<std::vector<float>>& weights) const {
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
      const wire::Frame* frame = brings(peer, version, chunk);
      ASSERT_NE(frame, nullptr);
      std::vector<float>& held = weights[chunk];
      if (frame->header.codec == CodecId::fp32) {
        held.resize(layout.chunks()[chunk].elements);
        std::memcpy(held.data(), frame->body.bytes().data(), frame->body.size());
      } else {
        std::vector<float> moved(held.size());
        ASSERT_TRUE(codec::add_delta(frame->header.codec, frame->body.bytes(), held, moved));
        held = moved;
      }
      EXPECT_TRUE(same(std::as_bytes(std::span(held)), coordinator->held(chunk).bytes())) << chunk;
    }
  }
  void step() {
    const std::size_t before = output.steps.size();
    for (auto& [session, peer] : peers)
      while (!peer.grants.empty() && output.steps.size() == before && !output.closed.contains(session)) work(peer);
    ASSERT_EQ(output.steps.size(), before + 1);
  }
  [[nodiscard]] bool exact() const {
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
      if (!same(coordinator->held(chunk).bytes(), coordinator->server().weights(chunk).bytes())) return false;
    return true;
  }
};

TEST_F(CoordinatorDelta, LeadsEverybodyToTheSameWeightsAndKeepsTheExactOnes) {
  two();
  std::vector<std::vector<float>> of_a(chunks()), of_b(chunks());
  follow(*a, 0, of_a);
  follow(*b, 0, of_b);
  for (std::uint64_t version = 1; version <= 3; ++version) {
    step();
    follow(*a, version, of_a);
    follow(*b, version, of_b);
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
      const wire::Frame& frame = *brings(*a, version, chunk);
      EXPECT_EQ(frame.header.codec, large(chunk) ? CodecId::int4 : CodecId::fp32) << chunk;
      EXPECT_EQ(frame.body.bytes().data(), brings(*b, version, chunk)->body.bytes().data()) << "encoded once";
    }
  }
  EXPECT_FALSE(exact());
  expect_exact(3);  // gradients do not depend on weights here
}

TEST_F(CoordinatorDelta, WorkersOfTheHeadShareWhatTheOthersHold) {
  options.shares = {1, 1, 1};
  options.min_workers = 2;
  make();
  a = &join(1, {}, true);
  b = &join(2);
  step();
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    EXPECT_EQ(brings(*a, 1, chunk)->body.bytes().data(), coordinator->held(chunk).bytes().data());
  EXPECT_EQ(brings(*b, 1, 0)->header.codec, CodecId::int4);
}

TEST_F(CoordinatorDelta, WithNobodyElseWeightsAreExact) {
  options.shares = {1, 1};
  options.test_samples = 16;
  options.steps = 1;
  make();
  a = &join(1, {}, true);
  step();
  EXPECT_TRUE(exact());
  run();
  ASSERT_EQ(output.evaluations.size(), 1U);
  EXPECT_TRUE(output.evaluations[0].exact);
}

TEST_F(CoordinatorDelta, EvaluationsSayWhoseWeightsTheyAreOf) {
  options.test_samples = 16;
  options.steps = 1;
  two();
  step();
  run();
  ASSERT_EQ(output.evaluations.size(), 1U);
  EXPECT_FALSE(output.evaluations[0].exact);
}

TEST_F(CoordinatorDelta, WhoJoinsGetsWhatTheOthersHoldWhole) {
  two();
  step();
  step();
  std::vector<std::vector<float>> held(chunks());
  Peer& c = join(3);
  follow(c, 2, held);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) EXPECT_EQ(brings(c, 2, chunk)->header.codec, CodecId::fp32);
  step();
  follow(c, 3, held);
  EXPECT_EQ(brings(c, 3, 0)->header.codec, CodecId::int4);
}

TEST_F(CoordinatorDelta, WhoFindsADifferenceGetsEverythingWholeAndAStrike) {
  two();
  step();
  a->frames.clear();
  say(*a, wire::Refresh{1});
  ASSERT_EQ(output.warnings.size(), 2U);
  EXPECT_THAT(output.warnings[0], testing::HasSubstr("w1 found its weights of version 1 to differ"));
  std::vector<std::vector<float>> held(chunks());
  follow(*a, 1, held);
  for (const wire::Frame& frame : a->frames) EXPECT_EQ(frame.header.codec, CodecId::fp32);
  synced(*a);
  step();
  follow(*a, 2, held);
  EXPECT_EQ(brings(*a, 2, 0)->header.codec, CodecId::int4);
  say(*a, wire::Refresh{2});
  say(*a, wire::Refresh{2});
  EXPECT_TRUE(output.closed.contains(a->session));
}

TEST_F(CoordinatorDelta, BeforeItIsInSyncAgainNothingIsADelta) {
  two();
  step();
  say(*a, wire::Refresh{});
  EXPECT_TRUE(output.warnings.empty());
  a->frames.clear();
  step();
  EXPECT_TRUE(a->frames.empty() || brings(*a, 2, 0)->header.codec == CodecId::fp32);
}

TEST_F(CoordinatorDelta, WhoAsksAgainWhileACopyIsOnItsWayGetsOneMoreAndNotEachTime) {
  two();
  step();
  a->frames.clear();
  output.queued[a->session] = 1;
  say(*a, wire::Refresh{});
  say(*a, wire::Refresh{});
  pass_time(ms(100), {a, b});
  EXPECT_TRUE(a->frames.empty());
  output.queued.clear();
  pass_time(ms(100), {a, b});
  const std::size_t whole = a->frames.size();
  std::vector<std::vector<float>> held(chunks());
  follow(*a, 1, held);
  pass_time(ms(100), {a, b});
  EXPECT_EQ(a->frames.size(), whole);
  synced(*a);
  step();
  follow(*a, 2, held);
}

TEST_F(CoordinatorDelta, WhoIsInSyncBeforeItsTurnComesIsSentNothingMore) {
  two();
  step();
  output.queued[a->session] = 1;
  say(*a, wire::Refresh{});
  synced(*a);
  a->frames.clear();
  output.queued.clear();
  pass_time(ms(100), {a, b});
  EXPECT_TRUE(a->frames.empty());
}

TEST_F(CoordinatorDelta, ChunksTakeTurnsToBringTheirHash) {
  options.steps = 2 * VersionFrames::kHashEvery;
  options.epochs = 0;
  two();
  std::vector<std::size_t> hashes(chunks());
  for (std::uint64_t version = 1; version <= VersionFrames::kHashEvery; ++version) {
    step();
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
      const wire::Frame& frame = *brings(*a, version, chunk);
      if (frame.header.subject == 0) continue;
      EXPECT_EQ(frame.header.subject, xxh64(coordinator->held(chunk).bytes()));
      ++hashes[chunk];
    }
    a->frames.clear();
  }
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) EXPECT_EQ(hashes[chunk], large(chunk) ? 1U : 0U);
}

TEST(VersionFrames, WhatNoDeltaLeadsToGoesWhole) {
  BufferPool pool;
  const std::vector<float> before(300, 1.0F);
  std::vector<float> after = before;
  after[7] = std::numeric_limits<float>::infinity();
  const auto bytes = [](const std::vector<float>& of) { return SharedBytes::copy_of(std::as_bytes(std::span(of))); };
  VersionFrames frames(1);
  frames.approach(0, bytes(after), bytes(before), CodecId::int8, pool);
  int sent = 0;
  frames.each(0, {}, {.holds_before = true}, [&](const wire::Frame& frame) {
    ++sent;
    EXPECT_EQ(frame.header.codec, CodecId::fp32);
    EXPECT_TRUE(same(frame.body.bytes(), std::as_bytes(std::span(after))));
  });
  EXPECT_EQ(sent, 1);
}

TEST(VersionFrames, WhatGoesInTheBackgroundIsCutShorter) {
  const std::vector<float> values(300000, 1.5F);
  VersionFrames frames(1);
  frames.set(0, SharedBytes::copy_of(std::as_bytes(std::span(values))));
  for (const bool background : {false, true, false}) {
    std::size_t sent = 0, bytes = 0;
    frames.each(0, {}, {.background = background}, [&](const wire::Frame& frame) {
      EXPECT_EQ(frame.header.offset, bytes);
      EXPECT_TRUE(wire::verify_body(frame.header, frame.body.bytes()).ok());
      bytes += frame.body.size();
      ++sent;
    });
    EXPECT_EQ(bytes, 4 * values.size());
    EXPECT_EQ(sent, background ? 5U : 2U);
  }
}

}  // namespace
}  // namespace motley::engine
