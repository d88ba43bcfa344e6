// Contributions that are added up on their way: what goes on of them, what waits, and what is kept in case that the
// coordinator wants it alone.

#include "engine/worker_merging.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/philox.h"
#include "codec/codec.h"
#include "ps/server.h"
#include "wire/limits.h"
#include "worker_session.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kGuest = 5, kSource = 7, kBefore = 21, kLease = 22;
constexpr ChunkId kSmall = 1;  // of two_tensors()

SharedBytes bytes_of(const std::vector<float>& values) {
  return SharedBytes::copy_of(std::as_bytes(std::span(values)));
}

std::vector<float> floats_of(const wire::Frame& frame) {
  return {frame.body.floats().begin(), frame.body.floats().end()};
}

class MergingTest : public testing::Test {
 protected:
  MergingTest() { merging.prepare(layout); }

  void begin(std::uint64_t from, std::uint64_t to, std::uint32_t hops = 0) {
    merging.begin(
        {.pass = pass_of(3), .lease = kLease, .from = from, .before = from == 0 ? 0 : kBefore, .to = to, .hops = hops},
        std::chrono::milliseconds(50), now);
  }
  wire::Frame from_guest(ChunkId chunk, const std::vector<float>& values, std::size_t offset = 0) const {
    wire::FrameHeader header;
    header.type = wire::FrameType::gradient;
    header.flags = wire::kMerged;
    header.pass = pass_of(3);
    header.subject = kBefore;
    header.version = 3;
    header.chunk = chunk;
    header.offset = static_cast<std::uint32_t>(offset);
    header.total = static_cast<std::uint32_t>(layout.chunks()[chunk].elements * sizeof(float));
    return wire::seal(header, bytes_of(values));
  }
  std::vector<float> ramp(ChunkId chunk, float factor) const {
    std::vector<float> values(layout.chunks()[chunk].elements);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = factor * static_cast<float>(i + 1);
    return values;
  }
  void add_own(ChunkId chunk, const std::vector<float>& values) { merging.add(lease, chunk, bytes_of(values), now); }
  bool pass_time(Duration time) {
    for (Duration done{}; done < time; done += std::chrono::milliseconds(100)) {
      now += std::chrono::milliseconds(100);
      if (merging.overdue(now)) return true;
    }
    return false;
  }

  Layout layout = two_tensors();
  ErrorFeedback feedback;
  Merging merging{feedback};
  Time now{std::chrono::seconds(1)};
  wire::Grant lease{pass_of(3), kLease, 3, 0, 0, 16, 8};
};

TEST_F(MergingTest, TheFirstSendsItsOwnToWhomItFollows) {
  begin(0, kSource);
  const std::vector<float> own = ramp(kSmall, 1);
  add_own(kSmall, own);
  const auto sent = merging.next();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->to, kSource);
  EXPECT_EQ(sent->frame.header.subject, kLease);
  EXPECT_EQ(sent->frame.header.version, 3U);
  EXPECT_EQ(sent->frame.header.flags, wire::kMerged);
  EXPECT_EQ(floats_of(sent->frame), own);
  EXPECT_FALSE(merging.next());
  EXPECT_FALSE(pass_time(std::chrono::seconds(5))) << "it waits for nobody";
}

TEST_F(MergingTest, OthersAddTheirsSegmentBySegmentWhicheverComesFirst) {
  LayoutEntry entry;
  entry.name = "long";
  entry.shape = {6 << 20};  // its chunks are longer than a segment
  layout = *Layout::make({entry});
  merging.prepare(layout);
  begin(kGuest, 0);
  const std::vector<float> theirs = ramp(0, 0.1F), own = ramp(0, 0.3F);
  constexpr std::size_t kCut = wire::kHandedOnBytesMax / sizeof(float);
  ASSERT_LT(kCut, own.size());
  const std::vector<float> low(theirs.begin(), theirs.begin() + kCut), high(theirs.begin() + kCut, theirs.end());
  EXPECT_FALSE(merging.add_from_guest(kGuest, from_guest(0, theirs), now)) << "more than goes at once";
  EXPECT_TRUE(merging.add_from_guest(kGuest, from_guest(0, high, wire::kHandedOnBytesMax), now));
  EXPECT_FALSE(merging.next());
  add_own(0, own);
  EXPECT_TRUE(merging.add_from_guest(kGuest, from_guest(0, low), now));
  std::vector<float> sum(own.size());
  for (int i = 0; i < 2; ++i) {
    const auto sent = merging.next();
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->to, 0U);
    const std::vector<float> part = floats_of(sent->frame);
    std::ranges::copy(part, sum.begin() + sent->frame.header.offset / static_cast<std::ptrdiff_t>(sizeof(float)));
  }
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], theirs[i] + own[i]);
}

TEST_F(MergingTest, WhatIsSaidSoonerThanTheOrderIsKeptForIt) {
  EXPECT_TRUE(merging.add_from_guest(kGuest, from_guest(kSmall, ramp(kSmall, 1)), now));
  EXPECT_TRUE(merging.add_from_guest(kGuest + 1, from_guest(kSmall, ramp(kSmall, 5)), now));
  begin(kGuest, 0);
  add_own(kSmall, ramp(kSmall, 2));
  const auto sent = merging.next();
  ASSERT_TRUE(sent);
  EXPECT_EQ(floats_of(sent->frame), ramp(kSmall, 3));
  EXPECT_FALSE(merging.next()) << "another guest has no part in it";
}

TEST_F(MergingTest, WhatDoesNotFitIsRefused) {
  begin(kGuest, 0);
  const std::vector<float> all = ramp(kSmall, 1);
  wire::Frame other = from_guest(kSmall, all);
  other.header.chunk = 99;
  EXPECT_FALSE(merging.add_from_guest(kGuest, other, now));
  other = from_guest(kSmall, all);
  other.header.total += 4;
  EXPECT_FALSE(merging.add_from_guest(kGuest, other, now));
  other = from_guest(kSmall, all);
  other.header.codec = wire::CodecId::int8;
  EXPECT_FALSE(merging.add_from_guest(kGuest, other, now)) << "small tensors are exact";
  other = from_guest(0, ramp(0, 1));
  other.header.codec = wire::CodecId::int8;
  EXPECT_FALSE(merging.add_from_guest(kGuest, other, now)) << "longer than it is in that codec";
  other = from_guest(kSmall, all);
  other.header.type = wire::FrameType::statistic;
  EXPECT_FALSE(merging.add_from_guest(kGuest, other, now));
  other = from_guest(kSmall, all);
  other.header.offset = 4;
  EXPECT_FALSE(merging.add_from_guest(kGuest, other, now)) << "beyond the end";
  EXPECT_TRUE(merging.add_from_guest(kGuest, from_guest(kSmall, all), now));
  EXPECT_FALSE(merging.add_from_guest(kGuest, from_guest(kSmall, all), now)) << "more than there is of it";
}

TEST_F(MergingTest, NobodyIsWaitedForLongerThanASecond) {
  begin(kGuest, kSource);
  EXPECT_FALSE(pass_time(std::chrono::seconds(4))) << "nothing of its own waits";
  add_own(kSmall, ramp(kSmall, 1));
  EXPECT_FALSE(pass_time(std::chrono::milliseconds(900)));
  EXPECT_TRUE(merging.add_from_guest(kGuest, from_guest(0, ramp(0, 1)), now));
  EXPECT_FALSE(pass_time(std::chrono::milliseconds(900))) << "something came";
  EXPECT_TRUE(pass_time(std::chrono::milliseconds(300)));
  EXPECT_EQ(merging.give_up(true), (wire::Unmerge{.pass = pass_of(3), .lease = kLease, .has = {}, .wrong = true}));
  EXPECT_FALSE(merging.give_up(true)) << "that is said once";
  EXPECT_FALSE(pass_time(std::chrono::seconds(5)));
}

TEST_F(MergingTest, WhoStoodStillItselfBlamesNobody) {
  begin(kGuest, kSource);
  add_own(kSmall, ramp(kSmall, 1));
  now += std::chrono::seconds(10);
  EXPECT_FALSE(merging.overdue(now));
  EXPECT_TRUE(pass_time(std::chrono::milliseconds(1200)));
}

TEST_F(MergingTest, WhatTheCoordinatorLacksGoesToItAlone) {
  begin(kGuest, kSource);
  add_own(0, ramp(0, 1));
  add_own(kSmall, ramp(kSmall, 2));
  const Merging::Kept kept = merging.end({.pass = pass_of(3), .lease = kLease, .has = {1}});
  EXPECT_EQ(kept.lease, lease);
  ASSERT_EQ(kept.chunks.size(), 1U);
  EXPECT_EQ(kept.chunks[0].first, kSmall);
  EXPECT_FALSE(merging.is_of(kLease)) << "what comes of it later goes the same way";
  EXPECT_TRUE(merging.end({.pass = pass_of(3), .lease = kLease, .has = {}}).chunks.empty());
}

TEST_F(MergingTest, WhomManyAreBehindWaitsLonger) {
  begin(kGuest, kSource, 30);
  add_own(kSmall, ramp(kSmall, 1));
  EXPECT_FALSE(pass_time(std::chrono::milliseconds(3900))) << "a second, and 30 hops both ways";
  EXPECT_TRUE(pass_time(std::chrono::milliseconds(300)));
  begin(kGuest, kSource, 1U << 31);
  add_own(kSmall, ramp(kSmall, 1));
  EXPECT_TRUE(pass_time(std::chrono::seconds(30))) << "a run has no more workers than it may";
}

TEST_F(MergingTest, WhoseOwnTookLongWaitsLonger) {
  begin(kGuest, kSource);
  EXPECT_FALSE(pass_time(std::chrono::seconds(20))) << "nothing of its own";
  add_own(kSmall, ramp(kSmall, 2));
  EXPECT_FALSE(pass_time(std::chrono::seconds(5)));
  EXPECT_TRUE(pass_time(std::chrono::milliseconds(200)));
}

TEST_F(MergingTest, NothingIsKeptOfWhatWasTaken) {
  begin(kGuest, kSource);
  add_own(kSmall, ramp(kSmall, 2));
  merging.taken(kLease + 1);
  EXPECT_TRUE(merging.is_of(kLease));
  merging.taken(kLease);
  EXPECT_FALSE(merging.is_of(kLease));
  begin(kGuest, kSource);
  merging.closed(pass_of(3));
  EXPECT_FALSE(merging.is_of(kLease));
}

// As the coordinator adds up what comes by itself.
TEST_F(MergingTest, ASumHasTheBitsThatTheCoordinatorWouldComeTo) {
  Philox random(7);
  const auto draw = [&](ChunkId chunk) {
    std::vector<float> values(layout.chunks()[chunk].elements);
    for (float& value : values)
      value = std::ldexp(static_cast<float>(random.uniform() - 0.5), static_cast<int>(random.below(40)) - 20);
    return values;
  };
  ps::Snapshot start;
  for (const Chunk& chunk : layout.chunks()) start.weights.push_back(bytes_of(std::vector<float>(chunk.elements)));
  ps::OptimizerSpec optimizer;
  optimizer.groups.resize(1);
  for (int trial = 0; trial < 8; ++trial) {
    const auto each = ps::Server::make(layout, optimizer, {}, 0, start);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
      const std::vector<std::vector<float>> parts{draw(chunk), draw(chunk), draw(chunk), draw(chunk)};
      wire::Frame sum = from_guest(chunk, parts[0]);
      for (const std::size_t worker : {1U, 2U}) {
        begin(kGuest, 0);
        add_own(chunk, parts[worker]);
        ASSERT_TRUE(merging.add_from_guest(kGuest, sum, now));
        sum.body = merging.next()->frame.body;
      }
      ps::Server alone = *ps::Server::make(layout, optimizer, {}, 0, start);
      ps::Server merged = *ps::Server::make(layout, optimizer, {}, 0, start);
      alone.reduce(chunk, std::vector<std::span<const float>>(parts.begin(), parts.end()), 3, 3);
      merged.reduce(chunk, std::vector<std::span<const float>>{sum.body.floats(), parts[3]}, 3, 3);
      const auto a = alone.gradient(chunk).bytes(), b = merged.gradient(chunk).bytes();
      ASSERT_TRUE(std::ranges::equal(a, b));
    }
  }
}

// A worker of a chain by itself.
struct Hop {
  explicit Hop(const Layout& layout) { merging.prepare(layout); }
  ErrorFeedback feedback;
  Merging merging{feedback};
};

class MergingInFewerBits : public testing::TestWithParam<wire::CodecId> {};

// What is not in the sums yet is in what the workers kept for the next one.
TEST_P(MergingInFewerBits, NothingIsLost) {
  LayoutEntry entry;
  entry.name = "long";
  entry.shape = {6 << 20};  // its chunks are longer than a segment
  const Layout layout = *Layout::make({entry});
  const std::size_t elements = layout.chunks()[0].elements;
  ASSERT_GT(elements * sizeof(float), wire::kHandedOnBytesMax);
  std::vector<Hop> hops;
  hops.reserve(3);
  for (int i = 0; i < 3; ++i) hops.emplace_back(layout);
  std::vector<double> wanted(elements), came(elements);
  Philox random(3);
  const Time now{std::chrono::seconds(1)};
  for (std::uint64_t step = 1; step <= 4; ++step) {
    std::vector<wire::Frame> below;
    for (std::size_t hop = 0; hop < hops.size(); ++hop) {
      const std::uint64_t number = 10 * step + hop;
      wire::Grant lease{pass_of(step), number, step, 0, 0, 16, 8};
      lease.codec = static_cast<std::uint32_t>(GetParam());
      lease.feedback = true;
      std::vector<float> own(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        own[i] = static_cast<float>(random.uniform() - 0.5);
        wanted[i] += own[i];
      }
      Merging& merging = hops[hop].merging;
      const std::uint64_t from = hop == 0 ? 0 : kGuest, to = hop + 1 == hops.size() ? 0 : kSource;
      merging.begin({.pass = lease.pass, .lease = number, .from = from, .before = hop == 0 ? 0 : number - 1, .to = to},
                    {}, now);
      merging.add(lease, 0, bytes_of(own), now);
      for (const wire::Frame& frame : below) ASSERT_TRUE(merging.add_from_guest(kGuest, frame, now));
      below.clear();
      while (auto sent = merging.next()) below.push_back(std::move(sent->frame));
      ASSERT_EQ(below.size(), 2U);
      hops[hop].feedback.taken({.pass = lease.pass, .lease = number, .discarded = {}});
    }
    for (const wire::Frame& frame : below) {
      EXPECT_EQ(frame.header.codec, GetParam());
      EXPECT_EQ(frame.header.total, codec::encoded_bytes(GetParam(), elements));
      const bool first = frame.header.offset == 0;
      const std::size_t cut = wire::kHandedOnBytesMax / sizeof(float);
      std::vector<float> part(first ? cut : elements - cut);
      codec::Encoded::make(GetParam(), frame.body.bytes(), part.size())->decode(0, part);
      for (std::size_t i = 0; i < part.size(); ++i) came[(first ? 0 : cut) + i] += part[i];
    }
  }
  double largest = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    double kept = 0;
    for (const Hop& hop : hops) kept += hop.feedback.residual(0)[i];
    EXPECT_NEAR(came[i] + kept, wanted[i], 1e-4);
    largest = std::max(largest, std::abs(kept));
  }
  EXPECT_GT(largest, 0);
}

INSTANTIATE_TEST_SUITE_P(Codecs, MergingInFewerBits,
                         testing::Values(wire::CodecId::bf16, wire::CodecId::int8, wire::CodecId::int4),
                         [](const auto& codec) { return std::string(codec::to_word(codec.param)); });

class WorkerThatMerges : public WorkerTest {
 protected:
  WorkerThatMerges() {
    join(4);
    control(wire::PassOpened{pass_of(4), 4, 0, 100, 16});
    control(grant(4, kLease));
  }
  wire::Frame from_guest(ChunkId chunk, float value) const {
    const Chunk& place = layout.chunks()[chunk];
    wire::FrameHeader header;
    header.type = place.kind == ChunkKind::statistics ? wire::FrameType::statistic : wire::FrameType::gradient;
    header.pass = pass_of(4);
    header.subject = kBefore;
    header.version = 4;
    header.chunk = chunk;
    return wire::seal(header, filled(place.elements, value));
  }
};

TEST_F(WorkerThatMerges, SendsSumsUnderItsOwnLease) {
  control(wire::Merge{pass_of(4), kLease, kGuest, kBefore, 0});
  complete(out.tasks.back().number, 8);
  EXPECT_TRUE(out.gradients.empty());
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) worker.from_guest(kGuest, from_guest(chunk, 0.5F), now);
  ASSERT_EQ(out.gradients.size(), chunks());
  for (const wire::Frame& frame : out.gradients) {
    EXPECT_EQ(frame.header.flags, wire::kMerged);
    EXPECT_EQ(frame.header.subject, kLease);
    EXPECT_EQ(frame.header.fence, kFence);
    EXPECT_EQ(frame.body.floats().front(), 3.5F);
  }
}

TEST_F(WorkerThatMerges, SendsItsOwnWhereThatIsOver) {
  control(wire::Merge{pass_of(4), kLease, kGuest, kBefore, 0});
  complete(out.tasks.back().number, 8);
  for (int i = 0; i < 15; ++i) {
    now += std::chrono::milliseconds(100);
    worker.tick(now);
  }
  ASSERT_EQ(out.sent<wire::Unmerge>().size(), 1U);
  EXPECT_TRUE(out.gradients.empty()) << "the coordinator says what it lacks";
  control(wire::Unmerge{pass_of(4), kLease, {1}});
  ASSERT_EQ(out.gradients.size(), chunks() - 1);
  for (const wire::Frame& frame : out.gradients) {
    EXPECT_EQ(frame.header.flags, 0);
    EXPECT_EQ(frame.body.floats().front(), 3.0F);
  }
}

}  // namespace
}  // namespace motley::engine
