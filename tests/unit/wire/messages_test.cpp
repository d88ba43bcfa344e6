#include "wire/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "golden.h"
#include "wire/fields.h"

namespace motley::wire {
namespace {

class Golden : public testing::TestWithParam<golden::Named> {};

TEST_P(Golden, EncodesToTheBytesOfTheFile) {
  const auto expected = golden::read(GetParam().file + ".bin");
  const SharedBytes encoded = encode(GetParam().message);
  EXPECT_TRUE(std::ranges::equal(encoded.bytes(), expected));
}

TEST_P(Golden, DecodesFromTheBytesOfTheFile) {
  const auto decoded = decode(golden::read(GetParam().file + ".bin"));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(*decoded, GetParam().message);
}

// A cut message is never read as the whole one, and always ends in an error, except where protobuf cannot tell: there
// is no such place, because the envelope carries the length.
TEST_P(Golden, IsRefusedCutAtAnyByte) {
  const auto bytes = golden::read(GetParam().file + ".bin");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = decode(std::span(bytes).first(size));
    ASSERT_FALSE(decoded.ok()) << size;
    EXPECT_EQ(decoded.error().code, ErrorCode::protocol);
    EXPECT_FALSE(decoded.error().message.empty());
    EXPECT_FALSE(decoded.error().hint.empty());
  }
}

// Cut inside the message with the envelope made to fit: an error, or a message with fewer fields; never a crash.
TEST_P(Golden, SurvivesACutInsideTheEnvelope) {
  const auto bytes = golden::read(GetParam().file + ".bin");
  const std::size_t key_bytes = std::to_integer<unsigned>(bytes[0]) >= 0x80 ? 2 : 1;
  const std::size_t length_bytes = std::to_integer<unsigned>(bytes[key_bytes]) >= 0x80 ? 2 : 1;
  const std::size_t start = key_bytes + length_bytes;
  for (std::size_t size = start; size < bytes.size(); ++size) {
    std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(key_bytes));
    const std::size_t inner = size - start;
    if (inner >= 0x80) cut.push_back(static_cast<std::byte>(inner | 0x80));
    cut.push_back(static_cast<std::byte>(inner >= 0x80 ? inner >> 7 : inner));
    cut.insert(cut.end(), bytes.begin() + static_cast<std::ptrdiff_t>(start),
               bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const auto decoded = decode(cut);
    if (decoded.ok()) {
      EXPECT_EQ(decoded->index(), GetParam().message.index());
      EXPECT_FALSE(std::ranges::equal(encode(*decoded).bytes(), bytes));  // bytes, because -0.0 == 0.0
    }
  }
}

TEST_P(Golden, IsNamedLikeItsFile) {
  std::string snake;
  for (const char letter : name_of(GetParam().message)) {
    const bool capital = letter >= 'A' && letter <= 'Z';
    if (capital && !snake.empty()) snake.push_back('_');
    snake.push_back(capital ? static_cast<char>(letter - 'A' + 'a') : letter);
  }
  EXPECT_EQ(snake, GetParam().file);
}

INSTANTIATE_TEST_SUITE_P(Messages, Golden, testing::ValuesIn(golden::messages()),
                         [](const auto& param) { return param.param.file; });

TEST(Messages, GoldenFilesCoverEveryKind) {
  std::set<std::size_t> kinds;
  for (const auto& named : golden::messages()) kinds.insert(named.message.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Message>);
}

template <class... Inner>
std::vector<std::uint32_t> kinds_of(std::type_identity<std::variant<Inner...>> /*all*/) {
  return {Table<Inner>::kKind...};
}

TEST(Messages, KindsAreNumberedInOrderFromOneButForThoseSetAside) {
  const auto kinds = kinds_of(std::type_identity<Message>{});
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(kinds[i], i < 22 ? i + 1 : i < 24 ? i + 3 : i + 5);
}

TEST(Messages, DefaultsTakeNoRoomAndComeBack) {
  const Message messages[] = {Hello{}, Proof{}, RunSpec{}, Ready{}, Grant{}, Begin{}, Finish{}, Failed{}, Bye{}};
  for (const Message& message : messages) {
    const SharedBytes encoded = encode(message);
    EXPECT_LE(encoded.size(), 3U) << name_of(message);
    const auto decoded = decode(encoded.bytes());
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, message);
  }
}

TEST(Messages, DoublesKeepEveryBit) {
  const std::uint64_t patterns[] = {0,
                                    0x8000000000000000,  // -0.0
                                    1,                   // the smallest
                                    0x000FFFFFFFFFFFFF,
                                    0x7FEFFFFFFFFFFFFF,  // the largest
                                    0x7FF0000000000000,  // infinity
                                    0xFFF0000000000000,
                                    0x7FF8000000000001,  // quiet NaN with a payload
                                    0xFFF8DEADBEEF0001,
                                    0x3FB999999999999A};
  for (const std::uint64_t bits : patterns) {
    Begin begin;
    begin.weight = std::bit_cast<double>(bits);
    begin.loss_sum = std::bit_cast<double>(bits);
    const auto decoded = decode(encode(begin).bytes());
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::get<Begin>(*decoded).weight), bits);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::get<Begin>(*decoded).loss_sum), bits);
  }
}

TEST(Messages, TextsForPeopleAreCutAndMadeValid) {
  Failed failed;
  failed.message = std::string(kStringBytesMax - 1, 'x') + "\xE2\x84\xA2 and more";
  auto decoded = decode(encode(failed).bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<Failed>(*decoded).message, std::string(kStringBytesMax - 1, 'x'));

  Bye bye;
  bye.hint = std::string(kStringBytesMax, 'x');
  decoded = decode(encode(bye).bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<Bye>(*decoded).hint, std::string(kSentenceCharactersMax - 1, 'x') + "…");

  Hello hello;
  hello.machine = "b\xFCro";  // Latin-1
  hello.name = "\x1B[2Jlaptop\non another machine:";
  hello.device = std::string(kNameBytesMax, 'd');
  decoded = decode(encode(hello).bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<Hello>(*decoded).machine, "b?ro");
  EXPECT_EQ(std::get<Hello>(*decoded).name, "?[2Jlaptop on another machine:");
  EXPECT_EQ(std::get<Hello>(*decoded).device, std::string(kNameCharactersMax - 1, 'd') + "…");
}

TEST(Messages, ShapesKeepTheirSign) {  // Layout::make refuses them; the wire only carries them
  Ready ready;
  ready.layout.emplace_back().shape = {std::numeric_limits<std::int64_t>::min(), -1, 0,
                                       std::numeric_limits<std::int64_t>::max()};
  const auto decoded = decode(encode(ready).bytes());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, Message(ready));
}

}  // namespace
}  // namespace motley::wire
