// Weights by their hash: whose bytes are taken, in which order they go on, and what the coordinator is told is missing.

#include "engine/worker_following.h"

#include <gtest/gtest.h>

#include "base/xxh64.h"

namespace motley::engine {
namespace {

using std::chrono::milliseconds;
constexpr std::size_t kChunks = 20;

wire::BodyHash short_hash(std::span<const std::byte> bytes) {
  wire::BodyHash hash{};
  hash[0] = static_cast<std::uint8_t>(xxh64(bytes));
  hash[1] = static_cast<std::uint8_t>(xxh64(bytes) >> 8);
  return hash;
}

wire::Frame bytes_of(std::uint64_t version, ChunkId chunk, int content = 0) {
  wire::FrameHeader header;
  header.type = wire::FrameType::weights;
  header.version = version;
  header.chunk = chunk;
  return wire::seal(header, SharedBytes::copy_of(std::vector<std::byte>(64, static_cast<std::byte>(content + chunk))));
}

wire::Frame by_hash(std::uint64_t version, ChunkId chunk, std::uint64_t source = 7, bool hand_on = false) {
  wire::Frame frame = bytes_of(version, chunk);
  const wire::BodyHash hash = short_hash(frame.body.bytes());
  wire::FrameHeader header = frame.header;
  header.flags = static_cast<std::uint16_t>(wire::kByHash | (hand_on ? wire::kHandOn : 0));
  header.pass = source;
  header.fence = 99;
  return wire::seal(header, SharedBytes::copy_of(std::as_bytes(std::span(hash))));
}

class FollowingTest : public testing::Test {
 protected:
  FollowingTest() {
    following.reset(kChunks);
    following.begin(7, now);
  }
  /// What goes on by now, by version and chunk.
  std::vector<std::pair<std::uint64_t, ChunkId>> taken() {
    std::vector<std::pair<std::uint64_t, ChunkId>> all;
    while (const auto frame = following.next()) {
      EXPECT_EQ(frame->body.size(), 64U);
      EXPECT_EQ(frame->header.length, 64U);
      EXPECT_EQ(frame->header.flags, 0);
      all.emplace_back(frame->header.version, frame->header.chunk);
    }
    return all;
  }
  static std::vector<bool> bits(const std::vector<std::uint8_t>& bytes) {
    std::vector<bool> all(kChunks);
    for (std::size_t i = 0; i < all.size() && i / 8 < bytes.size(); ++i) all[i] = (bytes[i / 8] >> i % 8 & 1) != 0;
    return all;
  }
  void say(const wire::Frame& frame) { ASSERT_TRUE(following.add(frame, now).ok()); }

  Following following{short_hash};
  Time now{std::chrono::seconds(5)};
};

using Taken = std::vector<std::pair<std::uint64_t, ChunkId>>;

TEST_F(FollowingTest, BytesGoOnInTheCoordinatorsOrderWithItsHeader) {
  say(by_hash(4, 0));
  say(bytes_of(4, 1));
  say(by_hash(4, 2));
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 2), now));
  EXPECT_EQ(taken(), Taken{});
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 0), now));
  const auto first = following.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->header.fence, 99U) << "the coordinator's header";
  EXPECT_EQ(taken(), (Taken{{4, 1}, {4, 2}}));
}

TEST_F(FollowingTest, BytesMayBeThereBeforeTheirHash) {
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 0), now));
  EXPECT_EQ(taken(), Taken{});
  say(by_hash(4, 0));
  EXPECT_EQ(taken(), (Taken{{4, 0}}));
  EXPECT_FALSE(following.overdue(now));
}

TEST_F(FollowingTest, WhatManyHandOnMayComeLater) {
  say(by_hash(4, 0));
  const auto waits = [&](Duration time) {
    bool late = false;
    for (Duration done{}; done < time; done += milliseconds(100)) late = following.overdue(now += milliseconds(100));
    return late;
  };
  following.begin(8, now, 3);
  say(by_hash(5, 0, 8));
  EXPECT_FALSE(waits(Following::kPatience + milliseconds(3 * 400))) << "what a segment takes twice, for each hop";
  EXPECT_TRUE(waits(milliseconds(3 * 200)));
}

TEST_F(FollowingTest, OtherBytesAreNotTakenWheneverTheyCome) {
  say(by_hash(4, 0));
  EXPECT_FALSE(following.add_from_source(bytes_of(4, 0, 1), now));
  EXPECT_EQ(taken(), Taken{});
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 1, 1), now));
  say(by_hash(4, 1));
  EXPECT_TRUE(following.wrong());
  EXPECT_TRUE(following.overdue(now));
  EXPECT_EQ(taken(), Taken{});
}

TEST_F(FollowingTest, OnlyWhatTheCoordinatorSaysIsHandedOn) {
  say(by_hash(4, 0, 7, true));
  say(by_hash(4, 1));
  EXPECT_FALSE(following.next_to_hand_on());
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 1), now));
  EXPECT_FALSE(following.next_to_hand_on());
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 0), now));
  const auto handed = following.next_to_hand_on();
  ASSERT_TRUE(handed) << "as soon as it is there";
  EXPECT_EQ(handed->header.chunk, 0U);
  EXPECT_FALSE(following.next_to_hand_on());
  wire::Frame whole = bytes_of(4, 2);
  whole.header.flags = wire::kHandOn;
  say(whole);
  EXPECT_TRUE(following.next_to_hand_on());
}

TEST_F(FollowingTest, WhatIsMissingComesFromTheCoordinatorInItsPlace) {
  for (const ChunkId chunk : {0U, 1U, 2U}) say(by_hash(4, chunk));
  say(by_hash(5, 0));
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 1), now));
  EXPECT_TRUE(following.add_from_source(bytes_of(5, 0), now));
  const wire::Unfollows end = following.give_up(false);
  EXPECT_EQ(end.id, 7U);
  EXPECT_EQ(end.version, 4U);
  std::vector<bool> expected(kChunks);
  expected[1] = true;
  EXPECT_EQ(bits(end.has), expected);
  EXPECT_EQ(following.source(), 0U);
  say(by_hash(4, 3));  // was on its way
  say(bytes_of(4, 0));
  say(bytes_of(4, 2));
  EXPECT_EQ(taken(), (Taken{{4, 0}, {4, 1}, {4, 2}, {5, 0}}));
  say(bytes_of(4, 3));
  EXPECT_EQ(taken(), (Taken{{4, 3}}));
}

TEST_F(FollowingTest, OfAChunkAllSegmentsAreThereOrNone) {
  wire::Frame first = by_hash(4, 3);
  first.header.total = 2 << 20;
  say(first);
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 3), now));
  const wire::Unfollows end = following.give_up(false);  // the hash of the second one is on its way
  EXPECT_EQ(end.version, 4U);
  EXPECT_FALSE(bits(end.has)[3]);
}

TEST_F(FollowingTest, WhoHasAllSaysSo) {
  EXPECT_EQ(following.give_up(false), (wire::Unfollows{.id = 7}));
  following.begin(8, now);
  say(by_hash(4, 9));
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 9), now));
  const wire::Unfollows end = following.give_up(true);
  EXPECT_TRUE(end.wrong);
  EXPECT_EQ(end.version, 4U);
  EXPECT_TRUE(bits(end.has)[9]);
}

TEST_F(FollowingTest, IsOverdueWhereNothingComesThatIsWaitedFor) {
  const Duration most = Following::kPatience + milliseconds(200);
  const auto passes = [&](Duration time) {
    bool late = false;
    for (Duration done{}; done < time; done += milliseconds(100)) late = following.overdue(now += milliseconds(100));
    return late;
  };
  EXPECT_FALSE(passes(most)) << "nothing is waited for";
  say(by_hash(4, 0));
  say(by_hash(4, 1));
  EXPECT_FALSE(passes(Following::kPatience - milliseconds(200)));
  EXPECT_TRUE(following.add_from_source(bytes_of(4, 1), now));
  EXPECT_FALSE(passes(Following::kPatience - milliseconds(200))) << "something came";
  now += std::chrono::seconds(60);
  EXPECT_FALSE(following.overdue(now)) << "it was this process that stood still";
  EXPECT_TRUE(passes(most));
}

TEST_F(FollowingTest, IsOverdueWhereWhatComesIsFarTooSlow) {
  for (ChunkId chunk = 0; chunk < kChunks; ++chunk) say(by_hash(4, chunk));
  bool late = false;
  ChunkId chunk = 0;
  for (; chunk < kChunks && !late; ++chunk) {
    for (int i = 0; i < 9; ++i) late = following.overdue(now += milliseconds(100)) || late;
    EXPECT_TRUE(following.add_from_source(bytes_of(4, chunk), now)) << "some bytes just in time, again and again";
  }
  EXPECT_LT(chunk, 5U);
}

TEST_F(FollowingTest, HowSlowIsTooSlowFollowsFromTheCoordinatorsLink) {
  for (ChunkId chunk = 0; chunk < kChunks; ++chunk) {  // 64 bytes, 50 ms each
    say(bytes_of(3, chunk));
    now += milliseconds(50);
  }
  taken();
  say(bytes_of(4, 0));
  for (ChunkId chunk = 1; chunk < kChunks; ++chunk) say(by_hash(4, chunk));
  for (ChunkId chunk = 1; chunk < 15; ++chunk) {
    for (int i = 0; i < 9; ++i) ASSERT_FALSE(following.overdue(now += milliseconds(100)));
    EXPECT_TRUE(following.add_from_source(bytes_of(4, chunk), now));
  }
}

TEST_F(FollowingTest, WhatWillNotComeIsKnown) {
  say(by_hash(4, 0));
  EXPECT_FALSE(following.lacks());
  following.give_up(false);
  following.settled(7, 4);
  EXPECT_FALSE(following.lacks()) << "the coordinator has it";
  following.settled(7, 5);
  EXPECT_TRUE(following.lacks());
  following.forget();
  EXPECT_FALSE(following.lacks());
  following.begin(8, now);
  say(by_hash(4, 1, 8));
  EXPECT_FALSE(following.lacks()) << "another brings it";
}

TEST_F(FollowingTest, WhoForgetsWantsNothingThatIsOnItsWay) {
  say(by_hash(4, 0));
  EXPECT_EQ(following.forget().id, 7U);
  say(by_hash(4, 1));
  EXPECT_EQ(taken(), Taken{});
  say(bytes_of(4, 0));
  EXPECT_EQ(taken(), (Taken{{4, 0}})) << "waits for nothing";
}

TEST_F(FollowingTest, WhoForgetsAfterItGaveUpWaitsForNothing) {
  say(by_hash(4, 0));
  following.give_up(false);
  say(by_hash(4, 1));  // was on its way; the coordinator may have neither any more
  following.forget();
  say(by_hash(4, 2));
  say(bytes_of(9, 0));
  EXPECT_EQ(taken(), (Taken{{9, 0}}));
  following.begin(8, now);
  say(by_hash(10, 0, 8));
  EXPECT_TRUE(following.add_from_source(bytes_of(10, 0), now));
  EXPECT_EQ(taken(), (Taken{{10, 0}}));
}

TEST_F(FollowingTest, HashesThatCannotBeAreRefused) {
  wire::Frame shorter = by_hash(4, 0);
  shorter.body = shorter.body.slice(0, 31);
  EXPECT_FALSE(following.add(shorter, now).ok());
  EXPECT_FALSE(following.add(by_hash(4, kChunks), now).ok());
  Following nobody{{}};
  nobody.reset(kChunks);
  EXPECT_FALSE(nobody.add(by_hash(4, 0), now).ok());
  EXPECT_TRUE(nobody.add(bytes_of(4, 0), now).ok());
}

TEST_F(FollowingTest, WhatCameEarlyIsBounded) {
  wire::FrameHeader header;
  header.type = wire::FrameType::weights;
  const SharedBytes large = SharedBytes::copy_of(std::vector<std::byte>(1 << 20));
  for (ChunkId chunk = 0; chunk < 40; ++chunk) {
    header.version = 9;
    header.chunk = chunk;
    EXPECT_TRUE(following.add_from_source(wire::seal(header, large), now));
  }
  EXPECT_LE(following.early_bytes(), Following::kEarlyBytesMax);
  header.chunk = 0;
  const std::size_t before = following.early_bytes();
  EXPECT_TRUE(following.add_from_source(wire::seal(header, SharedBytes()), now));
  EXPECT_NE(following.early_bytes(), before) << "without a body, too";
}

}  // namespace
}  // namespace motley::engine
