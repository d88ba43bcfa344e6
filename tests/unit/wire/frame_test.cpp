#include "wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/crc32c.h"
#include "base/little_endian.h"
#include "golden.h"
#include "wire/limits.h"

namespace motley::wire {
namespace {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

SharedBytes bytes_of(std::initializer_list<unsigned> values) {
  std::vector<std::byte> out;
  for (const unsigned value : values) out.push_back(static_cast<std::byte>(value));
  return SharedBytes::copy_of(out);
}

SharedBytes two_floats() { return bytes_of({0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC0}); }  // 1.0f, -2.5f

HeaderBytes read_header(const std::string& name) {
  const auto bytes = golden::read(name + ".bin");
  EXPECT_EQ(bytes.size(), kHeaderBytes) << name;
  HeaderBytes out{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
  return out;
}

FrameHeader of_type(FrameType type) {
  FrameHeader header;
  header.type = type;
  header.run = 0x1122334455667788;
  header.fence = 0x0000000200000007;
  header.pass = 0x0100000000000005;
  return header;
}

struct Vector {
  std::string file;
  Frame frame;
};

std::vector<Vector> vectors() {
  FrameHeader control = of_type(FrameType::control);
  control.fence = control.pass = 0;
  FrameHeader weights = of_type(FrameType::weights);
  weights.version = 6;
  FrameHeader in_order = weights;
  in_order.order = 0x01020304;
  FrameHeader gradient = of_type(FrameType::gradient);
  gradient.subject = 9;
  gradient.version = 5;
  gradient.chunk = 3;
  gradient.offset = 8;
  gradient.total = 16;
  FrameHeader delta = weights;
  delta.subject = 0xFBCEA83C8A378BF1;
  delta.chunk = 1;
  delta.offset = 4;
  delta.total = 258;
  delta.codec = CodecId::int8;
  FrameHeader statistic = of_type(FrameType::statistic);
  statistic.subject = 9;
  statistic.version = 5;
  statistic.chunk = 4;
  statistic.shard = 1;
  statistic.flags = 0x8001;
  FrameHeader ack = of_type(FrameType::ack);
  ack.subject = 9;
  FrameHeader blob = of_type(FrameType::blob);
  blob.fence = blob.pass = 0;
  blob.subject = 0xFEDCBA9876543210;
  blob.offset = 0xFFFFFFF0;
  blob.total = 0xFFFFFFFF;
  FrameHeader block = of_type(FrameType::block);
  block.fence = block.pass = 0;
  block.subject = 0xFEDCBA9876543210;
  block.offset = 262144;
  block.total = 1 << 20;
  return {
      {"frame_control", seal(control, bytes_of({0x4A, 0x00}))},
      {"frame_weights", seal(weights, two_floats())},
      {"frame_weights_in_order", seal(in_order, two_floats())},
      {"frame_weights_delta", seal(delta, two_floats())},
      {"frame_gradient", seal(gradient, two_floats())},
      {"frame_statistic", seal(statistic, two_floats())},
      {"frame_ack", seal(ack, {})},
      {"frame_block", seal(block, two_floats())},
      {"frame_blob", seal(blob, two_floats())},
  };
}

TEST(Frame, EncodesToTheBytesOfTheFiles) {
  for (const Vector& vector : vectors()) {
    EXPECT_EQ(encode_header(vector.frame.header), read_header(vector.file)) << vector.file;
  }
}

TEST(Frame, DecodesFromTheBytesOfTheFiles) {
  for (const Vector& vector : vectors()) {
    const auto header = decode_header(read_header(vector.file), kControlBytesMax);
    ASSERT_TRUE(header.ok()) << vector.file << ": " << header.error().message;
    EXPECT_EQ(*header, vector.frame.header) << vector.file;
    EXPECT_TRUE(verify_body(*header, vector.frame.body.bytes()).ok()) << vector.file;
  }
}

struct Refusal {
  std::string file;
  ErrorCode code;
  std::string says;
};

TEST(Frame, RefusesAndSaysWhy) {
  const Refusal refusals[] = {
      {"refused_magic", ErrorCode::protocol, "expected magic 594C544D (\"MTLY\"), found 594C544E"},
      {"refused_http", ErrorCode::protocol, "which is an HTTP request"},
      {"refused_tls", ErrorCode::protocol, "which is a TLS handshake"},
      {"refused_header_crc", ErrorCode::protocol, "header checksum is DEADBEEF, expected "},
      {"refused_protocol", ErrorCode::mismatch, "expected protocol version 1 (spoken here), found version 2"},
      {"refused_type_0", ErrorCode::protocol, "expected type 1 to 6 or 10, found 0"},
      {"refused_type_7", ErrorCode::protocol, "found 7"},
      {"refused_type_255", ErrorCode::protocol, "found 255"},
      {"refused_length", ErrorCode::protocol, "at most 8388608 bytes, found 8388609"},
      {"refused_length_max", ErrorCode::protocol, "at most 1048576 bytes, found 4294967295"},
      {"refused_segment_length", ErrorCode::protocol, "at most 1048576 bytes, found 1048577"},
      {"refused_reserved", ErrorCode::protocol, "reserved bytes 66 and 67 to be zero"},
      {"refused_order", ErrorCode::protocol, "an order of weights only, found 2147483648 in a frame of type 3"},
      {"refused_codec", ErrorCode::protocol, "expected codec 0 to 3 (fp32, bf16, int8, int4), found 4"},
      {"refused_outside", ErrorCode::protocol, "inside 8 bytes, found 8 bytes at offset 1"},
      {"refused_overflow", ErrorCode::protocol, "inside 7 bytes, found 8 bytes at offset 4294967295"},
  };
  for (const Refusal& refusal : refusals) {
    const auto header = decode_header(read_header(refusal.file), kControlBytesMax);
    ASSERT_FALSE(header.ok()) << refusal.file;
    EXPECT_EQ(header.error().code, refusal.code) << refusal.file;
    EXPECT_NE(header.error().message.find(refusal.says), std::string::npos) << header.error().message;
    EXPECT_FALSE(header.error().hint.empty()) << refusal.file;
  }
}

TEST(Frame, CallersLimitCountsWhereItIsSmaller) {
  FrameHeader header = of_type(FrameType::control);
  header.length = kUnprovenBytesMax + 1;
  const HeaderBytes bytes = encode_header(header);
  EXPECT_TRUE(decode_header(bytes, kControlBytesMax).ok());
  EXPECT_FALSE(decode_header(bytes, kUnprovenBytesMax).ok());
  EXPECT_FALSE(decode_header(bytes, 0).ok());
}

TEST(Frame, AnyFlippedBitIsFound) {
  for (const Vector& vector : vectors()) {
    const HeaderBytes good = read_header(vector.file);
    for (std::size_t bit = 0; bit < kHeaderBytes * 8; ++bit) {
      HeaderBytes bad = good;
      bad[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(decode_header(bad, kControlBytesMax).ok()) << vector.file << " bit " << bit;
    }
  }
}

TEST(Frame, AVersionNotSpokenIsToldFromDamage) {
  HeaderBytes bytes = read_header("refused_protocol");
  bytes[66] = std::byte{1};  // a later version may use reserved bytes; its own checksum says they are meant
  store_le<std::uint32_t>(bytes.data() + 76, crc32c(std::span(bytes).first(76)));
  const auto header = decode_header(bytes, kControlBytesMax);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().code, ErrorCode::mismatch);
}

TEST(Frame, BodyIsHeldAgainstItsHeader) {
  const Frame frame = seal(of_type(FrameType::weights), two_floats());
  EXPECT_TRUE(verify_body(frame.header, frame.body.bytes()).ok());
  const auto shorter = verify_body(frame.header, frame.body.bytes().first(7));
  ASSERT_FALSE(shorter.ok());
  EXPECT_EQ(shorter.error().message, "frame: expected a body of 8 bytes, found 7");
  const auto other = verify_body(frame.header, bytes_of({0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC1}).bytes());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::protocol);
  EXPECT_NE(other.error().message.find("body checksum"), std::string::npos);
}

TEST(Frame, SealFillsWhatItSays) {
  FrameHeader header = of_type(FrameType::gradient);
  header.total = 100;
  const Frame segment = seal(header, two_floats());
  EXPECT_EQ(segment.header.length, 8U);
  EXPECT_EQ(segment.header.total, 100U);
  EXPECT_EQ(segment.header.body_crc, crc32c(two_floats().bytes()));
  header.total = 0;
  const Frame whole = seal(header, two_floats(), false);
  EXPECT_EQ(whole.header.total, 8U);
  EXPECT_EQ(whole.header.body_crc, 0U);
}

TEST(FrameDeathTest, ASegmentOutsideItsWholeIsABug) {
  FrameHeader header = of_type(FrameType::gradient);
  header.offset = 1;
  header.total = 8;
  EXPECT_DEATH((void)seal(header, two_floats()), "motley: bug");
}

}  // namespace
}  // namespace motley::wire
