// Contributions that come as one sum, as the coordinator has it: who is asked to merge, what counts, and what happens
// where it cannot be.

#include "engine/coordinator_merges.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "codec/codec.h"
#include "coordinator_fixture.h"
#include "engine/coordinator_chain.h"

namespace motley::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr SessionId kOwn = 4;  // the head's worker

class CoordinatorMerges : public CoordinatorTest {
 protected:
  CoordinatorMerges() {
    options.steps = 200;
    options.train_samples = 48;
    options.chain = CoordinatorOptions::Chain::both;
    options.hasher = [](std::span<const std::byte>) { return wire::BodyHash{}; };
    features = {kChain, kMerge};
  }
  /// Three workers in a chain, of which the third gets weights last, and the head's own.
  void start(double clip_norm = 0) {
    options.min_workers = 4;
    options.shares = std::vector<double>(4, 1);
    make(0, clip_norm);
    for (SessionId id = 1; id <= 3; ++id) join(id);
    join(kOwn, "own", true);
    step();
    for (auto& [id, peer] : peers)
      for (const wire::Guest& guest : peer.all<wire::Guest>())
        say(peer, wire::Source{.id = guest.id, .port = 9, .addresses = {"10.0.0.1"}, .secret = {}, .spki = {}});
    for (auto& [id, peer] : peers)
      if (const auto sources = peer.all<wire::Source>(); !sources.empty()) say(peer, wire::Follows{sources.back().id});
    step();
  }
  /// As without a chain.
  void step() {
    const std::size_t before = output.steps.size();
    for (int i = 0; i < 10 && output.steps.size() == before; ++i)
      for (auto& [session, peer] : peers)
        while (!peer.grants.empty() && output.steps.size() == before && !output.closed.contains(session)) work(peer);
    ASSERT_EQ(output.steps.size(), before + 1);
  }
  /// All begin; by session.
  std::map<SessionId, wire::Grant> all_begin() {
    std::map<SessionId, wire::Grant> grants;
    for (auto& [id, peer] : peers) grants[id] = begun(peer);
    return grants;
  }
  wire::Frame sum_frame(const std::map<SessionId, wire::Grant>& grants, ChunkId chunk) {
    std::vector<float> sum(layout.chunks()[chunk].elements);
    for (const SessionId id : {3U, 2U, 1U}) {
      const wire::Grant& grant = grants.at(id);
      const std::vector<float> part = gradient_sum(layout.chunks()[chunk], grant.pass_first + grant.first, grant.count);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    wire::Frame frame = gradient_frame(peers[1], grants.at(1), chunk, std::move(sum));
    frame.header.flags = wire::kMerged;
    return frame;
  }
  std::size_t merges(SessionId id) { return peers[id].all<wire::Merge>().size(); }
  std::vector<wire::Unmerge> over(SessionId id) { return peers[id].all<wire::Unmerge>(); }
  ChunkId chunks() const { return static_cast<ChunkId>(layout.chunks().size()); }
};

TEST_F(CoordinatorMerges, WhoGetsWeightsLastComputesTheFirstPositions) {
  start();
  const auto grants = all_begin();
  EXPECT_EQ(grants.at(3).first, 0U);
  EXPECT_EQ(grants.at(2).first, 4U);
  EXPECT_EQ(grants.at(1).first, 8U);
  EXPECT_EQ(grants.at(kOwn).first, 12U) << "the head's own come last";
  const std::uint64_t low = peers[3].all<wire::Source>().back().id, high = peers[2].all<wire::Source>().back().id;
  const std::uint64_t pass = grants.at(1).pass;
  EXPECT_EQ(peers[3].all<wire::Merge>().back(), (wire::Merge{pass, grants.at(3).lease, 0, 0, low}));
  EXPECT_EQ(peers[2].all<wire::Merge>().back(),
            (wire::Merge{pass, grants.at(2).lease, low, grants.at(3).lease, high, 1}));
  EXPECT_EQ(peers[1].all<wire::Merge>().back(),
            (wire::Merge{pass, grants.at(1).lease, high, grants.at(2).lease, 0, 2}));
  EXPECT_EQ(merges(kOwn), 0U);
}

TEST_F(CoordinatorMerges, ASumCountsAsWhatIsInIt) {
  for (const double clip : {0.0, 1.0}) {
    coordinator.reset();
    peers.clear();
    output = {};
    start(clip);
    const auto grants = all_begin();
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
      deliver(peers[1], sum_frame(grants, chunk));
      push(peers[kOwn], grants.at(kOwn), chunk);
    }
    ASSERT_EQ(output.steps.size(), 3U);
    EXPECT_EQ(output.steps.back().merged, (Merged{3, ""}));
    std::vector<std::string> names;
    for (const CommittedRange& range : output.steps.back().ranges) names.push_back(range.worker);
    EXPECT_THAT(names, ElementsAre("w3", "w2", "w1", "own"));
    expect_exact(3, clip);
    for (const SessionId id : {1U, 2U, 3U}) {
      EXPECT_EQ(peers[id].all<wire::Taken>().back().lease, grants.at(id).lease);
      EXPECT_THAT(over(id), IsEmpty());
    }
  }
}

TEST_F(CoordinatorMerges, ASumInFewerBitsIsWhatItDecodesTo) {
  options.gradients = wire::CodecId::int8;
  start();
  ps::Server server = reference(2);
  const auto grants = all_begin();
  const auto encoded = [&](ChunkId chunk, wire::CodecId codec) {
    wire::Frame frame = sum_frame(grants, chunk);
    if (layout.chunks()[chunk].kind != ChunkKind::large) return frame;
    std::vector<std::byte> body(codec::encoded_bytes(codec, layout.chunks()[chunk].elements));
    codec::encode(codec, frame.body.floats(), {}, body, {});
    frame.header.codec = codec;
    frame.header.total = static_cast<std::uint32_t>(body.size());
    return wire::seal(frame.header, SharedBytes::copy_of(body));
  };
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
    const wire::Frame sum = encoded(chunk, wire::CodecId::int8);
    const Chunk& place = layout.chunks()[chunk];
    std::vector<float> decoded(place.elements);
    codec::Encoded::make(sum.header.codec, sum.body.bytes(), place.elements)->decode(0, decoded);
    const std::vector<float> own = gradient_sum(place, grants.at(kOwn).pass_first + grants.at(kOwn).first, 4);
    server.reduce(chunk, std::vector<std::span<const float>>{decoded, own}, 16, 16);
    deliver(peers[1], sum);
    push(peers[kOwn], grants.at(kOwn), chunk);
  }
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) server.apply(chunk);
  server.finish_step();
  ASSERT_EQ(output.steps.size(), 3U);
  EXPECT_EQ(output.steps.back().merged, (Merged{3, ""}));
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    EXPECT_TRUE(std::ranges::equal(server.weights(chunk).bytes(), coordinator->server().weights(chunk).bytes()));
}

TEST_F(CoordinatorMerges, ASumInAnotherCodecThanItsLeaseIsNone) {
  options.gradients = wire::CodecId::int8;
  start();
  const auto grants = all_begin();
  ASSERT_EQ(layout.chunks()[0].kind, ChunkKind::large);
  deliver(peers[1], sum_frame(grants, 0));
  ASSERT_EQ(over(1).size(), 1U);
  for (const auto& [id, grant] : grants)
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) push(peers[id], grant, chunk);
  ASSERT_EQ(output.steps.size(), 3U);
  EXPECT_EQ(output.steps.back().merged, (Merged{0, "a sum came in another form"}));
}

TEST_F(CoordinatorMerges, WhatCameBeforeAllHadBegunWaits) {
  start();
  std::map<SessionId, wire::Grant> grants;
  for (const SessionId id : {1U, 2U}) grants[id] = begun(peers[id]);
  grants[3] = take(peers[3]);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) deliver(peers[1], sum_frame(grants, chunk));
  EXPECT_THAT(over(1), IsEmpty());
  work(peers[kOwn]);
  EXPECT_EQ(output.steps.size(), 2U);
  begin(peers[3], grants[3]);
  EXPECT_EQ(output.steps.size(), 3U);
  expect_exact(3);
}

TEST_F(CoordinatorMerges, WhereOneIsLostTheOthersSendTheirOwnOfWhatDoesNotCount) {
  start();
  const auto grants = all_begin();
  deliver(peers[1], sum_frame(grants, 0));
  coordinator->session_closed(3, "it was killed", now);
  collect();
  EXPECT_EQ(over(1), (std::vector<wire::Unmerge>{{grants.at(1).pass, grants.at(1).lease, {1}}}));
  EXPECT_EQ(over(2), (std::vector<wire::Unmerge>{{grants.at(2).pass, grants.at(2).lease, {1}}}));
  deliver(peers[1], sum_frame(grants, 1));  // was on its way
  for (const SessionId id : {SessionId{1}, SessionId{2}, kOwn})
    for (ChunkId chunk = id == kOwn ? 0 : 1; chunk < chunks(); ++chunk) push(peers[id], grants.at(id), chunk);
  EXPECT_EQ(output.steps.size(), 2U) << "positions of the one that was lost are computed again";
  peers.erase(3);
  step();
  expect_exact(3);
}

TEST_F(CoordinatorMerges, WhoCannotSaysSoAndNobodyTriesAgainForAWhile) {
  start();
  const auto grants = all_begin();
  say(peers[2], wire::Unmerge{grants.at(2).pass, grants.at(2).lease, {}});
  for (const SessionId id : {1U, 2U, 3U}) EXPECT_EQ(over(id).size(), 1U);
  for (const auto& [id, grant] : grants)
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) push(peers[id], grant, chunk);
  ASSERT_EQ(output.steps.size(), 3U);
  expect_exact(3);
  EXPECT_EQ(output.steps.back().merged, (Merged{0, "w2 waited in vain for what it was to add its own to"}));
  const std::size_t before = merges(1);
  for (std::uint64_t i = 2; i < Merges::kRestSteps; ++i) step();  // the one in which it was said counts
  EXPECT_EQ(merges(1), before);
  EXPECT_THAT(output.steps.back().merged->ended, testing::StartsWith("not before step 6: w2 waited in vain"));
  step();
  EXPECT_EQ(merges(1), before + 1);
}

TEST_F(CoordinatorMerges, ARestIsTwiceAsLongEachTimeAndShorterAgainWhereItGoesWell) {
  start();
  const auto rest_after_a_fault = [&] {
    const auto grants = all_begin();
    say(peers[2], wire::Unmerge{grants.at(2).pass, grants.at(2).lease, {}});
    for (const auto& [id, grant] : grants)
      for (ChunkId chunk = 0; chunk < chunks(); ++chunk) push(peers[id], grant, chunk);
    std::uint64_t steps = 1;
    for (const std::size_t before = merges(1); merges(1) == before; ++steps) step();
    return steps;
  };
  const auto good_steps = [&] {
    for (std::uint64_t i = 0; i < Merges::kGoodSteps; ++i) {
      const auto grants = all_begin();
      for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
        deliver(peers[1], sum_frame(grants, chunk));
        push(peers[kOwn], grants.at(kOwn), chunk);
      }
    }
  };
  EXPECT_EQ(rest_after_a_fault(), Merges::kRestSteps);
  EXPECT_EQ(rest_after_a_fault(), 2 * Merges::kRestSteps);
  EXPECT_EQ(rest_after_a_fault(), 4 * Merges::kRestSteps);
  good_steps();
  EXPECT_EQ(rest_after_a_fault(), 4 * Merges::kRestSteps);
}

TEST_F(CoordinatorMerges, WhatIsNotFiniteOrInAnotherCodecIsNoSum) {
  start();
  const auto grants = all_begin();
  wire::Frame wrong = sum_frame(grants, 0);
  std::vector<float> values(wrong.body.floats().begin(), wrong.body.floats().end());
  values[7] = std::numeric_limits<float>::infinity();
  wrong.body = SharedBytes::copy_of(std::as_bytes(std::span(values)));
  deliver(peers[1], wire::seal(wrong.header, wrong.body));
  for (const SessionId id : {1U, 2U, 3U}) ASSERT_EQ(over(id).size(), 1U);
  EXPECT_THAT(over(1)[0].has, ElementsAre(0));
  EXPECT_THAT(output.warnings, IsEmpty()) << "whose part is wrong shows as each sends its own";
  for (const auto& [id, grant] : grants)
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) push(peers[id], grant, chunk);
  ASSERT_EQ(output.steps.size(), 3U);
  expect_exact(3);
}

TEST_F(CoordinatorMerges, WhatNobodyComesNearIsNoSum) {
  start();
  for (int i = 0; i < 10; ++i) {  // until the head knows what is usual
    const auto grants = all_begin();
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
      deliver(peers[1], sum_frame(grants, chunk));
      push(peers[kOwn], grants.at(kOwn), chunk);
    }
    ASSERT_EQ(output.steps.size(), 3U + static_cast<std::size_t>(i));
  }
  const auto grants = all_begin();
  std::vector<float> values(layout.chunks()[0].elements, 1e9F);
  wire::Frame wrong = gradient_frame(peers[1], grants.at(1), 0, std::move(values));
  wrong.header.flags = wire::kMerged;
  deliver(peers[1], wrong);
  for (const SessionId id : {1U, 2U, 3U}) ASSERT_EQ(over(id).size(), 1U);
  EXPECT_THAT(output.warnings, IsEmpty());
  for (const auto& [id, grant] : grants)
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) push(peers[id], grant, chunk);
  expect_exact(13);
}

TEST_F(CoordinatorMerges, RangesThatDoNotMeetAreNoSum) {
  start();
  std::map<SessionId, wire::Grant> grants;
  for (const SessionId id : {SessionId{1}, SessionId{2}, kOwn}) grants[id] = begun(peers[id]);
  wire::Grant less = take(peers[3]);
  less.count -= 1;
  begin(peers[3], less);
  for (const SessionId id : {1U, 2U, 3U}) ASSERT_EQ(over(id).size(), 1U);
  grants[3] = less;
  for (const auto& [id, grant] : grants)
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) push(peers[id], grant, chunk);
  step();
  expect_exact(3);
}

TEST_F(CoordinatorMerges, WhoIsNotTheLastSendsNoSums) {
  start();
  const auto grants = all_begin();
  wire::Frame sum = sum_frame(grants, 0);
  sum.header.subject = grants.at(2).lease;
  sum.header.fence = peers[2].fence;
  deliver(peers[2], sum);
  EXPECT_THAT(over(2), IsEmpty());
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
    deliver(peers[1], sum_frame(grants, chunk));
    push(peers[kOwn], grants.at(kOwn), chunk);
  }
  ASSERT_EQ(output.steps.size(), 3U);
  expect_exact(3);
}

TEST_F(CoordinatorMerges, WhatOneSentAloneIsNotCountedTwice) {
  start();
  const auto grants = all_begin();
  push(peers[2], grants.at(2), 0);
  deliver(peers[1], sum_frame(grants, 0));
  ASSERT_EQ(over(2).size(), 1U);
  EXPECT_THAT(over(2)[0].has, ElementsAre(1));
  EXPECT_THAT(over(1)[0].has, ElementsAre(0));
  for (const auto& [id, grant] : grants)
    for (ChunkId chunk = id == 2 ? 1 : 0; chunk < chunks(); ++chunk) push(peers[id], grant, chunk);
  ASSERT_EQ(output.steps.size(), 3U);
  expect_exact(3);
}

TEST_F(CoordinatorMerges, WhatCountsTogetherIsComputedAgainTogether) {
  start(1.0);
  const auto grants = all_begin();
  deliver(peers[1], sum_frame(grants, 0));
  say(peers[2], wire::Unmerge{grants.at(2).pass, grants.at(2).lease, {}});
  std::vector<float> broken(layout.chunks()[1].elements, std::numeric_limits<float>::infinity());
  deliver(peers[3], gradient_frame(peers[3], grants.at(3), 1, std::move(broken)));
  EXPECT_EQ(output.warnings.size(), 1U);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) push(peers[kOwn], grants.at(kOwn), chunk);
  step();
  expect_exact(3, 1.0);
}

}  // namespace
}  // namespace motley::engine
