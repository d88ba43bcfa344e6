#include "runtime/pairing.h"

#include <gtest/gtest.h>

#include <set>

namespace motley::runtime {
namespace {

transport::Digest digest(std::uint8_t byte) {
  transport::Digest out{};
  out.fill(byte);
  return out;
}

constexpr std::uint8_t kHead = 1, kJoiner = 2, kInTheMiddle = 3, kConnection = 4, kAnother = 5;

transport::PeerIdentity peer(std::uint8_t spki, std::uint8_t exporter = kConnection) {
  return {.address = "10.77.0.11:4711", .encrypted = true, .spki = digest(spki), .exporter = digest(exporter)};
}

class PairingTest : public testing::Test {
 protected:
  PairingTest() {
    token_.addresses = {"10.77.0.10"};
    token_.port = 7117;
    token_.run = 77;
    token_.spki = digest(kHead);
    token_.secret.fill(9);
  }
  // What the joiner ends up with; each side sees the other over the connection that it has.
  Result<fleet::JoinToken> run(PairingHead& head, PairingJoiner& joiner, const transport::PeerIdentity& seen_by_head,
                               const transport::PeerIdentity& seen_by_joiner) {
    const PairingEnds of_head{seen_by_head, own_head_}, of_joiner{seen_by_joiner, own_joiner_};
    const auto share = head.answer(joiner.begin(), of_head);
    if (!share) return share.error();
    const auto confirm = joiner.confirm(*share, of_joiner);
    if (!confirm) return confirm.error();
    head_believes_ = head.knows(*confirm);
    return joiner.token_in(head.welcome(token_), of_joiner);
  }
  const transport::Digest own_head_ = digest(kHead), own_joiner_ = digest(kJoiner);
  fleet::JoinToken token_;
  bool head_believes_ = false;
};

TEST_F(PairingTest, TheRightCodeGetsTheToken) {
  PairingHead head("123456", "desktop");
  PairingJoiner joiner("123456", "laptop");
  const auto token = run(head, joiner, peer(kJoiner), peer(kHead));
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(*token, token_);
  EXPECT_TRUE(head_believes_);
  EXPECT_EQ(head.joiner(), "laptop");
}

TEST_F(PairingTest, NamesThatAreShownOtherwiseThanGivenPairToo) {
  PairingHead head("123456", "desk\x1Btop\xFF");
  PairingJoiner joiner("123456", std::string(300, 'n') + "\n");
  EXPECT_TRUE(run(head, joiner, peer(kJoiner), peer(kHead)));
  EXPECT_TRUE(head_believes_);
}

TEST_F(PairingTest, AWrongCodeIsBelievedByNeitherSide) {
  PairingHead head("123456", "desktop");
  PairingJoiner joiner("123457", "laptop");
  const auto token = run(head, joiner, peer(kJoiner), peer(kHead));
  EXPECT_FALSE(head_believes_);
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().code, ErrorCode::refused);
}

// Somebody in the middle has a connection to each of them, knows everything that is sent, and not the code.
TEST_F(PairingTest, AnotherCertificateOrConnectionOnTheWayIsBelievedByNeitherSide) {
  struct Seen {
    transport::PeerIdentity by_head, by_joiner;
  };
  for (const Seen& seen : {Seen{peer(kInTheMiddle), peer(kInTheMiddle)}, Seen{peer(kInTheMiddle), peer(kHead)},
                           Seen{peer(kJoiner), peer(kInTheMiddle)}, Seen{peer(kJoiner, kAnother), peer(kHead)}}) {
    PairingHead head("123456", "desktop");
    PairingJoiner joiner("123456", "laptop");
    EXPECT_FALSE(run(head, joiner, seen.by_head, seen.by_joiner));
    EXPECT_FALSE(head_believes_);
  }
}

TEST_F(PairingTest, AnotherNameOnTheWayIsBelievedByNeitherSide) {
  PairingHead head("123456", "desktop");
  PairingJoiner joiner("123456", "laptop");
  const transport::PeerIdentity of_head = peer(kHead), of_joiner = peer(kJoiner);
  wire::Pair pair = joiner.begin();
  pair.name = "another";
  const auto share = head.answer(pair, {of_joiner, own_head_});
  ASSERT_TRUE(share);
  const auto confirm = joiner.confirm(*share, {of_head, own_joiner_});
  ASSERT_TRUE(confirm);
  EXPECT_FALSE(head.knows(*confirm));
}

TEST_F(PairingTest, AConfirmationOfAnotherAttemptIsWorthNothing) {
  const transport::PeerIdentity of_head = peer(kHead), of_joiner = peer(kJoiner);
  PairingHead first("123456", "desktop"), second("123456", "desktop");
  PairingJoiner joiner("123456", "laptop");
  const auto share = first.answer(joiner.begin(), {of_joiner, own_head_});
  const auto confirm = joiner.confirm(*share, {of_head, own_joiner_});
  ASSERT_TRUE(first.knows(*confirm));
  ASSERT_TRUE(second.answer(joiner.begin(), {of_joiner, own_head_}));  // all of it played back
  EXPECT_FALSE(second.knows(*confirm));
}

TEST_F(PairingTest, NothingIsBelievedBeforeTheShares) {
  const PairingHead head("123456", "desktop");
  const PairingJoiner joiner("123456", "laptop");
  const transport::PeerIdentity of_head = peer(kHead);
  EXPECT_FALSE(head.knows({}));
  EXPECT_FALSE(head.knows({std::vector<std::uint8_t>(32)}));
  EXPECT_FALSE(joiner.token_in({{}, fleet::to_text(token_)}, {of_head, own_joiner_}));
}

TEST_F(PairingTest, ATokenOfAnotherHeadOrInPlainTextIsRefused) {
  PairingHead head("123456", "desktop");
  PairingJoiner joiner("123456", "laptop");
  token_.spki = digest(kAnother);
  auto token = run(head, joiner, peer(kJoiner), peer(kHead));
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().code, ErrorCode::protocol);
  token_.spki = digest(kHead);
  token_.plaintext = true;
  PairingHead plain("123456", "desktop");
  PairingJoiner again("123456", "laptop");
  token = run(plain, again, peer(kJoiner), peer(kHead));
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().code, ErrorCode::protocol);
}

TEST_F(PairingTest, SharesThatAreNoPointsAreRefused) {
  PairingHead head("123456", "desktop");
  PairingJoiner joiner("123456", "laptop");
  const transport::PeerIdentity of_head = peer(kHead), of_joiner = peer(kJoiner);
  EXPECT_FALSE(head.answer({1, "laptop", {}}, {of_joiner, own_head_}));
  EXPECT_FALSE(joiner.confirm({"desktop", std::vector<std::uint8_t>(65, 4)}, {of_head, own_joiner_}));
}

TEST(PairingCodeText, IsSixDigitsInAnyGrouping) {
  EXPECT_EQ(read_code("123456"), "123456");
  EXPECT_EQ(read_code(" 123 456\r"), "123456");
  EXPECT_EQ(read_code("123-456"), "123456");
  for (const char* text : {"", "12345", "1234567", "12345a", "motley1.x", "123456 7"}) EXPECT_FALSE(read_code(text));
  std::set<std::string> codes;
  for (int i = 0; i < 100; ++i) {
    codes.insert(make_code());
    EXPECT_EQ(read_code(*codes.begin()), *codes.begin());
  }
  EXPECT_GT(codes.size(), 90U);
}

}  // namespace
}  // namespace motley::runtime
