// Weights from worker to worker over real connections: who is let in, and what comes.

#include "runtime/worker/weights_peers.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

fleet::JoinToken token_of_head(bool plaintext) {
  fleet::JoinToken token;
  token.run = 0x51;
  token.plaintext = plaintext;
  return token;
}

/// One worker's side, and what comes to it.
class Peer {
 public:
  Peer(const std::string& name, bool plaintext)
      : identity(transport::make_identity()), peers(token_of_head(plaintext), name, identity, [this] {
          const std::lock_guard lock(mutex_);
          ++came_;
          changed_.notify_all();
        }) {}
  WeightsPeers::Event next() {
    return wait<WeightsPeers::Event>([this] { return peers.take(); });
  }
  WeightsPeers::FromGuest from_guest() {
    return wait<WeightsPeers::FromGuest>([this] { return peers.take_from_guest(); });
  }

 private:
  template <class T, class Take>
  T wait(Take take) {
    for (;;) {
      std::size_t before = 0;
      {
        const std::lock_guard lock(mutex_);
        before = came_;
      }
      if (std::optional<T> found = take()) return *std::move(found);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return came_ > before; });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t came_ = 0;

 public:
  transport::Identity identity;
  WeightsPeers peers;  // its threads end before what they call
};

wire::Frame some_weights(ChunkId chunk) {
  wire::FrameHeader header;
  header.type = wire::FrameType::weights;
  header.flags = 0;
  header.fence = 99;
  header.order = wire::kOrdered | 5;
  header.version = 4;
  header.chunk = chunk;
  return wire::seal(header, SharedBytes::copy_of(std::vector<std::byte>(70000, static_cast<std::byte>(chunk))), false);
}

class WeightsPeersTest : public testing::TestWithParam<bool> {
 protected:
  /// As the head brings the two together.
  wire::Source introduce(std::uint64_t id) {
    wire::Guest guest{.id = id, .secret = std::vector<std::uint8_t>(wire::kGuestSecretBytes, 7), .spki = {}};
    if (!plaintext()) guest.spki.assign(follower.identity.spki.begin(), follower.identity.spki.end());
    wire::Source named = *source.peers.let_in(guest);
    named.addresses = {"127.0.0.1"};
    named.secret = guest.secret;
    if (!plaintext()) named.spki.assign(source.identity.spki.begin(), source.identity.spki.end());
    return named;
  }
  static bool plaintext() { return GetParam(); }
  static bool over(const WeightsPeers::Event& event) {
    return std::holds_alternative<PeerLink::Broken>(event.second) ||
           std::holds_alternative<PeerLink::Refused>(event.second);
  }

  Peer source{"source", plaintext()}, follower{"follower", plaintext()};
};

TEST_P(WeightsPeersTest, WhoWasNamedGetsWhatIsHandedOn) {
  ASSERT_TRUE(follower.peers.follow(introduce(11)));
  WeightsPeers::Event event = follower.next();
  EXPECT_EQ(event.first, 11U);
  ASSERT_TRUE(std::holds_alternative<PeerLink::Connected>(event.second));
  while (source.peers.guests() == 0) std::this_thread::yield();
  for (const ChunkId chunk : {3U, 4U}) source.peers.hand_on(some_weights(chunk), 1 << 20);
  for (const ChunkId chunk : {3U, 4U}) {
    event = follower.next();
    const auto* frame = std::get_if<wire::Frame>(&event.second);
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->header.chunk, chunk);
    EXPECT_EQ(frame->header.version, 4U);
    EXPECT_EQ(frame->header.fence, 0U) << "of the source's own session";
    EXPECT_EQ(frame->header.order, 0U);
    EXPECT_EQ(frame->body.bytes()[69999], static_cast<std::byte>(chunk));
  }
  source.peers.let_out(11);
  EXPECT_TRUE(over(follower.next()));
}

TEST_P(WeightsPeersTest, GradientsGoTheOtherWay) {
  ASSERT_TRUE(follower.peers.follow(introduce(11)));
  ASSERT_TRUE(std::holds_alternative<PeerLink::Connected>(follower.next().second));
  wire::Frame sent = some_weights(3);
  sent.header.type = wire::FrameType::gradient;
  sent.header.order = 0;
  sent.header.flags = wire::kMerged;
  sent.header.pass = 5;
  sent.header.subject = 6;
  follower.peers.hand_up(12, sent);
  follower.peers.hand_up(11, sent);
  const WeightsPeers::FromGuest got = source.from_guest();
  EXPECT_EQ(got.first, 11U);
  EXPECT_EQ(got.second.header.pass, 5U);
  EXPECT_EQ(got.second.header.subject, 6U);
  EXPECT_EQ(got.second.header.flags, wire::kMerged);
  EXPECT_EQ(got.second.header.fence, 0U) << "of the follower's own session";
  EXPECT_EQ(got.second.body.bytes()[69999], static_cast<std::byte>(3));
  follower.peers.hand_up(11, some_weights(3));
  EXPECT_TRUE(over(follower.next())) << "weights go one way only";
}

TEST_P(WeightsPeersTest, WhoHasAnotherSecretIsNotLetIn) {
  wire::Source named = introduce(11);
  named.secret[3] ^= 1;
  ASSERT_TRUE(follower.peers.follow(named));
  EXPECT_TRUE(over(follower.next()));
  EXPECT_EQ(source.peers.guests(), 0U);
}

TEST_P(WeightsPeersTest, WhoLeavesTooMuchUnreadIsLetOut) {
  ASSERT_TRUE(follower.peers.follow(introduce(11)));
  ASSERT_TRUE(std::holds_alternative<PeerLink::Connected>(follower.next().second));
  while (source.peers.guests() == 0) std::this_thread::yield();
  while (source.peers.guests() > 0) source.peers.hand_on(some_weights(1), 0);  // the kernel may take one at once
  while (!over(follower.next())) continue;
}

TEST_P(WeightsPeersTest, ALinkThatWasReplacedSaysNothingAnyMore) {
  ASSERT_TRUE(follower.peers.follow(introduce(11)));
  ASSERT_TRUE(follower.peers.follow(introduce(12)));
  const WeightsPeers::Event event = follower.next();
  EXPECT_EQ(event.first, 12U);
  EXPECT_TRUE(std::holds_alternative<PeerLink::Connected>(event.second));
}

INSTANTIATE_TEST_SUITE_P(Ways, WeightsPeersTest, testing::Bool(),
                         [](const auto& of) { return std::string(of.param ? "Plaintext" : "Tls"); });

}  // namespace
}  // namespace motley::runtime
