#include "runtime/auth.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::runtime {
namespace {

using transport::Digest;
using transport::PeerIdentity;

Digest filled(std::uint8_t value) {
  Digest digest;
  digest.fill(value);
  return digest;
}

// One encrypted connection as its two ends see it.
struct Channel {
  Digest head_key = filled(1), joiner_key = filled(2);
  PeerIdentity at_head{"joiner", true, filled(2), filled(3)};
  PeerIdentity at_joiner{"head", true, filled(1), filled(3)};
  fleet::JoinToken token;

  Channel() {
    token.run = 7;
    token.id = 8;
    token.secret.fill(9);
  }
  std::vector<std::uint8_t> joiner_mac(std::string_view role = "join") const {
    return proof_mac(token, role, at_joiner, joiner_key, Side::joiner);
  }
  bool head_accepts(std::span<const std::uint8_t> mac, std::string_view role = "join") const {
    return proof_holds(mac, token, role, at_head, head_key, Side::head);
  }
};

TEST(Auth, BothSidesProveTheSecretToEachOther) {
  const Channel channel;
  EXPECT_TRUE(channel.head_accepts(channel.joiner_mac()));
  EXPECT_TRUE(channel.head_accepts(channel.joiner_mac("lane"), "lane"));
  const auto reply = proof_mac(channel.token, "head", channel.at_head, channel.head_key, Side::head);
  EXPECT_TRUE(proof_holds(reply, channel.token, "head", channel.at_joiner, channel.joiner_key, Side::joiner));
}

TEST(Auth, AProofIsOfOneRole) {
  const Channel channel;
  EXPECT_FALSE(channel.head_accepts(channel.joiner_mac("lane")));
  EXPECT_FALSE(channel.head_accepts(channel.joiner_mac("join"), "lane"));
  // What a joiner sent, sent back to it, is no proof of the head.
  EXPECT_FALSE(
      proof_holds(channel.joiner_mac(), channel.token, "head", channel.at_joiner, channel.joiner_key, Side::joiner));
}

TEST(Auth, AProofIsOfOneTokenAndOneConnection) {
  const Channel channel;
  Channel other[] = {channel, channel, channel, channel, channel, channel};
  other[0].token.secret[15] ^= 1;
  other[1].token.id ^= 1;
  other[2].token.run ^= 1;
  other[3].joiner_key = filled(5);
  other[4].at_joiner.spki = filled(5);  // somebody between the two, with a key of his own
  other[5].at_joiner.exporter = filled(5);
  for (const Channel& each : other) EXPECT_FALSE(channel.head_accepts(each.joiner_mac()));
  for (int token = 0; token < 3; ++token) EXPECT_TRUE(other[token].head_accepts(other[token].joiner_mac()));
}

TEST(Auth, AnythingButTheWholeMacIsRefused) {
  const Channel channel;
  std::vector<std::uint8_t> mac = channel.joiner_mac();
  ASSERT_EQ(mac.size(), 32U);
  for (std::size_t i = 0; i < mac.size(); ++i) {
    EXPECT_FALSE(channel.head_accepts(std::span(mac).first(i))) << i;
    mac[i] ^= 0x80;
    EXPECT_FALSE(channel.head_accepts(mac)) << i;
    mac[i] ^= 0x80;
  }
  mac.push_back(0);
  EXPECT_FALSE(channel.head_accepts(mac));
}

TEST(Auth, WithoutEncryptionTheKeysCountAsZero) {
  Channel channel;
  channel.at_head = {"joiner", false, {}, {}};
  channel.at_joiner = {"head", false, {}, {}};
  const auto mac = channel.joiner_mac();
  EXPECT_TRUE(channel.head_accepts(mac));
  channel.token.secret[0] ^= 1;
  EXPECT_FALSE(channel.head_accepts(mac));
}

}  // namespace
}  // namespace motley::runtime
