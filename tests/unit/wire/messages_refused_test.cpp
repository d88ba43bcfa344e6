// Control messages that are not let in, and what is said about them.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/little_endian.h"
#include "wire/limits.h"
#include "wire/messages.h"

namespace motley::wire {
namespace {

// A tiny writer of its own, so that wrong bytes can be written.
class Bytes {
 public:
  Bytes& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>((value & 0x7F) | 0x80));
    text_.push_back(static_cast<char>(value));
    return *this;
  }
  Bytes& key(std::uint32_t number, std::uint32_t wire_type) { return varint((number << 3) | wire_type); }
  Bytes& raw(const std::string& text) {
    text_ += text;
    return *this;
  }
  Bytes& field(std::uint32_t number, const std::string& content) {
    return key(number, 2).varint(content.size()).raw(content);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

constexpr std::uint32_t kHello = 1;
constexpr std::uint32_t kProof = 2;
constexpr std::uint32_t kRunSpec = 4;
constexpr std::uint32_t kReady = 5;
constexpr std::uint32_t kRefresh = 9;
constexpr std::uint32_t kGrant = 11;
constexpr std::uint32_t kBegin = 15;
constexpr std::uint32_t kFinish = 16;

std::string in_envelope(std::uint32_t kind, const Bytes& inner) { return Bytes().field(kind, inner.text()).text(); }

std::string entry(std::uint64_t dtype, std::uint64_t kind) {
  return Bytes().field(1, "w").key(3, 0).varint(dtype).key(4, 0).varint(kind).text();
}

// The error of `bytes`, with its parts checked.
std::string refusal(const std::string& bytes) {
  const auto decoded = decode(as_bytes(bytes));
  if (decoded.ok()) return "accepted";
  EXPECT_EQ(decoded.error().code, ErrorCode::protocol);
  EXPECT_FALSE(decoded.error().hint.empty());
  EXPECT_TRUE(decoded.error().message.starts_with("control message: ")) << decoded.error().message;
  return decoded.error().message.substr(std::string("control message: ").size());
}

TEST(MessagesRefused, UnknownKindIsNamedByItsNumber) {
  EXPECT_EQ(refusal(in_envelope(23, Bytes())), "unknown kind 23, expected 1 to 22, 25, 26 or 29 to 33");
  EXPECT_EQ(refusal(in_envelope(199, Bytes())), "unknown kind 199, expected 1 to 22, 25, 26 or 29 to 33");
  EXPECT_EQ(refusal(Bytes().key(77, 0).varint(1).text()), "unknown kind 77, expected 1 to 22, 25, 26 or 29 to 33");
}

TEST(MessagesRefused, EmptyEnvelope) {
  EXPECT_EQ(refusal(""), "expected one message in the envelope, found none");
  EXPECT_EQ(refusal(Bytes().field(200, "attribute").text()), "expected one message in the envelope, found none");
}

TEST(MessagesRefused, SecondMessage) {
  EXPECT_EQ(refusal(Bytes().field(kRefresh, "").field(kGrant, "").text()),
            "expected one message in the envelope, found a second, of kind 11");
}

TEST(MessagesRefused, KindThatIsNoMessage) {
  EXPECT_EQ(refusal(Bytes().key(kGrant, 0).varint(3).text()), "kind 11 (Grant): expected a message, found a varint");
}

TEST(MessagesRefused, WrongWireTypes) {
  EXPECT_EQ(refusal(in_envelope(kGrant, Bytes().key(1, 0).varint(5))), "Grant.pass: expected 8 bytes, found a varint");
  EXPECT_EQ(refusal(in_envelope(kGrant, Bytes().field(2, "xx"))),
            "Grant.lease: expected a varint, found a length and bytes");
  EXPECT_EQ(refusal(in_envelope(kBegin, Bytes().key(5, 5).raw("1234"))),
            "Begin.weight: expected 8 bytes, found 4 bytes");
  EXPECT_EQ(refusal(in_envelope(kHello, Bytes().key(2, 0).varint(5))),
            "Hello.software: expected a length and bytes, found a varint");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, Bytes().key(2, 1).raw("12345678").text()))),
            "LayoutEntry.shape: expected a length and bytes, found 8 bytes");
}

TEST(MessagesRefused, GroupsAreNoLongerPartOfProtobuf) {
  EXPECT_TRUE(refusal(in_envelope(kGrant, Bytes().key(99, 3))).starts_with("expected protobuf fields, found damaged"));
  EXPECT_TRUE(refusal(Bytes().key(kGrant, 6).text()).starts_with("expected protobuf fields, found damaged"));
}

TEST(MessagesRefused, NumbersBeyondTheirType) {
  EXPECT_EQ(refusal(in_envelope(kHello, Bytes().key(1, 0).varint(std::uint64_t{1} << 32))),
            "Hello.protocol: expected 0 to 4294967295, found 4294967296");
}

TEST(MessagesRefused, VarintOfElevenBytes) {
  EXPECT_TRUE(refusal(in_envelope(kGrant, Bytes().key(2, 0).raw(std::string(10, '\xFF') + '\x01')))
                  .starts_with("expected protobuf fields, found damaged"));
}

TEST(MessagesRefused, EnumsOutOfRange) {
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, entry(9, 1)))), "LayoutEntry.dtype: expected 1 to 8, found 9");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, entry(0, 1)))), "LayoutEntry.dtype: expected 1 to 8, found 0");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, entry(256 + 1, 1)))),
            "LayoutEntry.dtype: expected 1 to 8, found 257");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, entry(1, 7)))), "LayoutEntry.kind: expected 1 to 6, found 7");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, ""))), "LayoutEntry.dtype: expected 1 to 8, found none");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, Bytes().key(3, 0).varint(1).text()))),
            "LayoutEntry.kind: expected 1 to 6, found none");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, entry(8, 6)))), "accepted");
}

TEST(MessagesRefused, LengthOfTwoToThe63) {
  const Bytes huge = Bytes().key(2, 2).varint(std::uint64_t{1} << 63).raw("abc");
  EXPECT_EQ(refusal(in_envelope(kHello, huge)),
            "Hello.software: expected at most the 3 bytes that are left, found a length of 9223372036854775808");
  EXPECT_EQ(refusal(huge.text()),
            "Proof: expected at most the 3 bytes that are left, found a length of 9223372036854775808");
  const Bytes unknown = Bytes().key(99, 2).varint(std::uint64_t{1} << 32);  // would be 0 if cut to 32 bits
  EXPECT_EQ(refusal(in_envelope(kHello, unknown)),
            "Hello: expected at most the 0 bytes that are left, found a length of 4294967296");
  EXPECT_EQ(refusal(Bytes().key(200, 2).varint(5).text()),
            "envelope: expected at most the 0 bytes that are left, found a length of 5");
}

TEST(MessagesRefused, TooLong) {
  EXPECT_EQ(refusal(in_envelope(kHello, Bytes().field(3, std::string(kNameBytesMax, 'x')))), "accepted");
  EXPECT_EQ(refusal(in_envelope(kHello, Bytes().field(3, std::string(kNameBytesMax + 1, 'x')))),
            "Hello.name: expected at most 256 bytes, found 257");
  EXPECT_EQ(refusal(in_envelope(kProof, Bytes().field(1, std::string(kMacBytesMax, 'x')))), "accepted");
  EXPECT_EQ(refusal(in_envelope(kProof, Bytes().field(1, std::string(kMacBytesMax + 1, 'x')))),
            "Proof.mac: expected at most 64 bytes, found 65");
  EXPECT_EQ(refusal(in_envelope(kRunSpec, Bytes().field(1, std::string(kConfigBytesMax, 'x')))), "accepted");
  EXPECT_EQ(refusal(in_envelope(kRunSpec, Bytes().field(1, std::string(kConfigBytesMax + 1, 'x')))),
            "RunSpec.config: expected at most 1048576 bytes, found 1048577");
  EXPECT_EQ(refusal(std::string(kControlBytesMax + 1, '\0')), "expected at most 8388608 bytes, found 8388609");
}

TEST(MessagesRefused, TooMany) {
  Bytes features;
  for (std::size_t i = 0; i < kFeaturesMax; ++i) features.field(8, "f");
  EXPECT_EQ(refusal(in_envelope(kHello, features)), "accepted");
  EXPECT_EQ(refusal(in_envelope(kHello, features.field(8, "f"))),
            "Hello.features: expected at most 64 items, found more");

  const std::string sizes(kShapeDimensionsMax, '\1');
  const std::string start = entry(1, 1);
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, start + Bytes().field(2, sizes).text()))), "accepted");
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, start + Bytes().field(2, sizes + '\1').text()))),
            "LayoutEntry.shape: expected at most 16 items, found more");
  const std::string unpacked = Bytes().field(2, sizes).key(2, 0).varint(1).text();
  EXPECT_EQ(refusal(in_envelope(kReady, Bytes().field(1, start + unpacked))),
            "LayoutEntry.shape: expected at most 16 items, found more");

  Bytes layout;
  for (std::size_t i = 0; i < kLayoutEntriesMax; ++i) layout.field(1, start);
  EXPECT_EQ(refusal(in_envelope(kReady, layout)), "accepted");
  EXPECT_EQ(refusal(in_envelope(kReady, layout.field(1, start))),
            "Ready.layout: expected at most 65536 items, found more");
}

TEST(MessagesRefused, ScoresThatAreTooManyOrBroken) {
  const std::string most(kScoresMax * 8, 'x');
  EXPECT_EQ(refusal(in_envelope(kFinish, Bytes().field(11, most))), "accepted");
  EXPECT_EQ(refusal(in_envelope(kFinish, Bytes().field(11, most + "12345678"))),
            "Finish.scores: expected at most 512 bytes, found 520");
  EXPECT_EQ(refusal(in_envelope(kFinish, Bytes().field(11, most).key(11, 1).raw("12345678"))),
            "Finish.scores: expected at most 64 items, found more");
  EXPECT_EQ(refusal(in_envelope(kFinish, Bytes().field(11, "1234567"))),
            "Finish.scores: expected whole numbers of eight bytes, found a part of one");
}

TEST(MessagesRefused, TextThatIsNoUtf8) {
  EXPECT_EQ(refusal(in_envelope(kHello, Bytes().field(3, "b\xFCro"))), "Hello.name: expected UTF-8, found other bytes");
}

TEST(MessagesAccepted, UnknownFieldsEverywhere) {
  const std::string extra =
      Bytes().key(90, 0).varint(7).key(91, 1).raw("12345678").field(92, "text").key(93, 5).raw("1234").text();
  const std::string start = entry(1, 1);
  const std::string inner = Bytes().field(1, start + extra).raw(extra).text();
  const std::string envelope = Bytes().field(201, "trace").field(kReady, inner).field(200, "more").text();
  const auto ready = decode(as_bytes(envelope));
  ASSERT_TRUE(ready.ok()) << ready.error().message;
  Ready expected;
  expected.layout.emplace_back().name = "w";
  EXPECT_EQ(*ready, Message(expected));
}

TEST(MessagesAccepted, FieldsInAnyOrderAndTheLastOneCounts) {
  Bytes fields;
  fields.key(7, 0).varint(1).key(2, 0).varint(4).key(7, 0).varint(96);
  fields.key(1, 1).raw(std::string("\5\0\0\0\0\0\0\1", 8));
  const auto grant = decode(as_bytes(in_envelope(kGrant, fields)));
  ASSERT_TRUE(grant.ok()) << grant.error().message;
  const auto& read = std::get<Grant>(*grant);
  EXPECT_EQ(read.pass, 0x0100000000000005U);
  EXPECT_EQ(read.lease, 4U);
  EXPECT_EQ(read.count, 96U);
}

TEST(MessagesAccepted, ScoresThatAreNotPacked) {
  const std::string half("\0\0\0\0\0\0\xE0\x3F", 8);
  const auto finish = decode(as_bytes(in_envelope(kFinish, Bytes().key(11, 1).raw(half).field(11, half))));
  ASSERT_TRUE(finish.ok()) << finish.error().message;
  EXPECT_EQ(std::get<Finish>(*finish).scores, (std::vector<double>{0.5, 0.5}));
}

TEST(MessagesAccepted, ShapesThatAreNotPacked) {
  const auto ready = decode(as_bytes(
      in_envelope(kReady, Bytes().field(1, entry(1, 1) + Bytes().key(2, 0).varint(3).key(2, 0).varint(4).text()))));
  ASSERT_TRUE(ready.ok()) << ready.error().message;
  EXPECT_EQ(std::get<Ready>(*ready).layout.at(0).shape, (std::vector<std::int64_t>{3, 4}));
}

}  // namespace
}  // namespace motley::wire
