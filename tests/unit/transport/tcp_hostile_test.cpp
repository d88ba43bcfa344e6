// What a listener bears from peers that keep to no rules.

#include "base/crc32c.h"
#include "base/little_endian.h"
#include "base/philox.h"
#include "raw_peer.h"

namespace motley::transport {
namespace {

void expect_good_client_gets_in(Door& door, const TcpOptions& server, TcpOptions client = plain_options()) {
  const std::size_t before = door.frames();
  client.plaintext = server.plaintext;
  if (!client.plaintext && !client.identity) client.identity = make_identity();
  Tcp tcp(client);
  std::optional<Digest> pin;
  if (server.identity) pin = server.identity->spki;
  auto connection = connect(tcp, {{"127.0.0.1", door.port()}}, pin);
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  connection.value()->start(std::make_shared<Ignore>());
  connection.value()->send(frame_of(wire::FrameType::control, 10), Priority::control);
  EXPECT_EQ(door.wait_frames(before + 1), before + 1);
}

TEST(TcpHostile, TruncatedAtEveryByte) {
  Door door(plain_options());
  const wire::Frame frame = frame_of(wire::FrameType::control, 20);
  const auto header = wire::encode_header(frame.header);
  std::vector<std::byte> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), frame.body.bytes().begin(), frame.body.bytes().end());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    RawPeer peer = RawPeer::connect(door.port());
    ASSERT_TRUE(peer.send(std::span(bytes).first(size)));
    peer.end();
    ASSERT_TRUE(peer.closed_by_peer());
    const Error error = door.wait_ended(size + 1).back();
    ASSERT_EQ(error.code, ErrorCode::network);
    const bool torn = error.message.find("in the middle of a frame") != std::string::npos;
    ASSERT_EQ(torn, size > 0) << error.message;
  }
  EXPECT_EQ(door.frames(), 0U);
  EXPECT_EQ(door.tcp().dropped_connections(), bytes.size());
}

TEST(TcpHostile, RandomBytes) {
  const TcpOptions options = plain_options();
  Door door(options);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Philox random(seed);
    std::vector<std::byte> bytes(80 + random.below(2000));
    for (auto& byte : bytes) byte = static_cast<std::byte>(random.next_u32());
    RawPeer peer = RawPeer::connect(door.port());
    peer.send(bytes);
    ASSERT_TRUE(peer.closed_by_peer());
    ASSERT_EQ(door.wait_ended(seed + 1).back().code, ErrorCode::protocol);
  }
  EXPECT_EQ(door.frames(), 0U);
  expect_good_client_gets_in(door, options);
}

TEST(TcpHostile, EnormousLengthsWithProperChecksums) {
  for (const bool proven : {false, true}) {
    Door door(plain_options());
    if (proven) door.trust();
    std::size_t count = 0;
    for (const auto type : {wire::FrameType::control, wire::FrameType::gradient, wire::FrameType::blob}) {
      for (const std::uint32_t length : {0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
        wire::FrameHeader header;
        header.type = type;
        header.length = header.total = length;
        RawPeer peer = RawPeer::connect(door.port());
        ASSERT_TRUE(peer.send(wire::encode_header(header)));
        ASSERT_TRUE(peer.closed_by_peer());
        const Error error = door.wait_ended(++count).back();
        EXPECT_TRUE(error.code == ErrorCode::protocol || error.code == ErrorCode::refused) << error.message;
      }
    }
  }
}

TEST(TcpHostile, DamagedBodyOtherVersionUnknownType) {
  Door door(plain_options());
  const wire::Frame frame = frame_of(wire::FrameType::control, 100);
  {
    auto body = std::vector<std::byte>(100, std::byte{7});
    RawPeer peer = RawPeer::connect(door.port());
    ASSERT_TRUE(peer.send(wire::encode_header(frame.header)) && peer.send(body));
    ASSERT_TRUE(peer.closed_by_peer());
    EXPECT_EQ(door.wait_ended(1).back().code, ErrorCode::protocol);
  }
  auto unknown = wire::encode_header({});
  unknown[5] = std::byte{200};
  store_le(unknown.data() + 76, crc32c(std::span(unknown).first(76)));
  RawPeer peer = RawPeer::connect(door.port());
  ASSERT_TRUE(peer.send(unknown));
  ASSERT_TRUE(peer.closed_by_peer());
  const Error error = door.wait_ended(2).back();
  EXPECT_EQ(error.code, ErrorCode::protocol);
  EXPECT_NE(error.message.find("200"), std::string::npos) << error.message;
  EXPECT_EQ(door.frames(), 0U);
}

TEST(TcpHostile, SilenceBeforeProofIsEnded) {
  for (TcpOptions options : {plain_options(), tls_options()}) {
    options.limits.unproven_time = std::chrono::milliseconds(50);
    Door door(options);
    RawPeer peer = RawPeer::connect(door.port());
    EXPECT_TRUE(peer.closed_by_peer());
    if (options.plaintext) {
      EXPECT_EQ(door.wait_ended(1).back().code, ErrorCode::refused);
    }
    EXPECT_EQ(door.tcp().dropped_connections(), 1U);
  }
}

TEST(TcpHostile, AProvenConnectionMayBeSilent) {
  TcpOptions options = plain_options();
  options.limits.unproven_time = std::chrono::milliseconds(50);
  Door door(options);
  door.trust();
  RawPeer proven = RawPeer::connect(door.port());
  ASSERT_TRUE(proven.send(frame_of(wire::FrameType::control, 1)));
  ASSERT_EQ(door.wait_frames(1), 1U);
  // A later newcomer's time has run out by then, so the first one's had, if it were measured.
  TcpOptions strict = options;
  Door other(strict);
  RawPeer unproven = RawPeer::connect(other.port());
  ASSERT_TRUE(unproven.closed_by_peer());
  ASSERT_TRUE(proven.send(frame_of(wire::FrameType::gradient, 100)));
  EXPECT_EQ(door.wait_frames(2), 2U);
}

TEST(TcpHostile, TooMuchBeforeProof) {
  Door door(plain_options());
  RawPeer peer = RawPeer::connect(door.port());
  const wire::Frame frame = frame_of(wire::FrameType::control, 1000);
  for (int i = 0; i < 70; ++i) {
    if (!peer.send(frame)) break;
  }
  EXPECT_TRUE(peer.closed_by_peer());
  EXPECT_EQ(door.wait_ended(1).back().code, ErrorCode::refused);
  EXPECT_LE(door.frames(), wire::kUnprovenBytesMax / 1080);
}

TEST(TcpHostile, DataBeforeProof) {
  Door door(plain_options());
  RawPeer peer = RawPeer::connect(door.port());
  peer.send(frame_of(wire::FrameType::gradient, 100));
  EXPECT_TRUE(peer.closed_by_peer());
  EXPECT_EQ(door.wait_ended(1).back().code, ErrorCode::protocol);
}

TEST(TcpHostile, ResetIsReported) {
  Door door(plain_options());
  door.trust();
  RawPeer peer = RawPeer::connect(door.port());
  ASSERT_TRUE(peer.send(frame_of(wire::FrameType::control, 1)));
  ASSERT_EQ(door.wait_frames(1), 1U);
  peer.reset();
  EXPECT_EQ(door.wait_ended(1).back().code, ErrorCode::network);
}

TEST(TcpHostile, AThousandWithoutProofAndAGoodOne) {
  const std::size_t many = raw::sockets_max() > 1200 ? 1000 : raw::sockets_max() / 2;
  for (const TcpOptions& options : {plain_options(), tls_options()}) {
    Door door(options);
    std::vector<RawPeer> peers;
    for (std::size_t i = 0; i < many; ++i) peers.push_back(RawPeer::connect(door.port()));
    // All but the newest few were pushed out by those after them: nothing piles up.
    const std::size_t stay = options.plaintext ? wire::kUnprovenPerAddressMax : wire::kSilentPerAddressMax;
    for (std::size_t i = 0; i + stay < many; ++i) ASSERT_TRUE(peers[i].closed_by_peer());
    EXPECT_GE(door.tcp().dropped_connections(), many - stay);
    expect_good_client_gets_in(door, options);
  }
}

// Whoever knows the run keeps the place that he had at the door before any proof, whatever comes from his own address.
TEST(TcpHostile, WhoKnocksIsNotPushedOut) {
  TcpOptions options = tls_options();
  options.knock = Digest{1, 2, 3};
  Door door(options);
  TcpOptions client = tls_options();
  client.knock = options.knock;
  Tcp tcp(client);
  const auto connection = connect(tcp, {{"127.0.0.1", door.port()}}, options.identity->spki);
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  std::vector<RawPeer> silent, talking;
  for (std::size_t i = 0; i < 200; ++i) silent.push_back(RawPeer::connect(door.port()));
  for (std::size_t i = 0; i < 100; ++i) {
    talking.push_back(RawPeer::connect(door.port()));
    talking.back().send(std::vector{std::byte{0x16}});
  }
  for (std::size_t i = 0; i + wire::kUnprovenPerAddressMax < talking.size(); ++i)
    ASSERT_TRUE(talking[i].closed_by_peer());
  connection.value()->start(std::make_shared<Ignore>());
  connection.value()->send(frame_of(wire::FrameType::control, 10), Priority::control);
  EXPECT_EQ(door.wait_frames(1), 1U);
}

// A knock of another run is no reason to refuse: whose token is wrong hears so from whoever looks at tokens.
TEST(TcpHostile, AWrongKnockIsAStrangers) {
  TcpOptions options = tls_options();
  options.knock = Digest{1, 2, 3};
  Door door(options);
  TcpOptions client = tls_options();
  client.knock = Digest{4};
  expect_good_client_gets_in(door, options, client);
}

TEST(TcpHostile, PlaintextOnAnEncryptedPort) {
  const TcpOptions options = tls_options();
  Door door(options);
  RawPeer peer = RawPeer::connect(door.port());
  ASSERT_TRUE(peer.send(frame_of(wire::FrameType::control, 100)));
  EXPECT_TRUE(peer.closed_by_peer());
  EXPECT_EQ(door.tcp().dropped_connections(), 1U);
  expect_good_client_gets_in(door, options);
}

TEST(TcpHostile, GarbageInsideTheHandshake) {
  const TcpOptions options = tls_options();
  Door door(options);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Philox random(seed);
    std::vector<std::byte> bytes{std::byte{0x16}, std::byte{3}, std::byte{1}, std::byte{2}, std::byte{0}};
    for (int i = 0; i < 512; ++i) bytes.push_back(static_cast<std::byte>(random.next_u32()));
    RawPeer peer = RawPeer::connect(door.port());
    peer.send(bytes);
    ASSERT_TRUE(peer.closed_by_peer());
  }
  EXPECT_EQ(door.tcp().dropped_connections(), 20U);
  expect_good_client_gets_in(door, options);
}

}  // namespace
}  // namespace motley::transport
