#include "data/format/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../fixtures.h"
#include "base/little_endian.h"

namespace motley::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::operator+;
using test::Bytes;
using test::from_hex;

// docs/formats/packed.md; written by tools/pack.py.
Bytes golden_file() {
  return from_hex("894d4f544c45590a 01000000 07000100 0100000000000000 0300000000000000 0300000000000000") +
         from_hex("0200000000000000") + Bytes(56) + from_hex("2477f681 ddefcbe8") + Bytes(12) + from_hex("bdf61b4e") +
         from_hex("010203040506") + Bytes(58) + from_hex("0000000000000000 0200000000000000 0100000000000000");
}

void fix_header(Bytes& bytes) {
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), 124);
  store_le(&bytes[124], static_cast<std::uint32_t>(crc));
}

std::string packed_complaint(const Bytes& bytes) {
  const auto parts = parse_packed(SharedBytes::copy_of(bytes), "d.motley");
  if (parts) return "accepted";
  EXPECT_EQ(parts.error().code, ErrorCode::input);
  EXPECT_THAT(parts.error().message, HasSubstr("d.motley: expected"));
  EXPECT_FALSE(parts.error().hint.empty());
  return parts.error().message;
}

TEST(Packed, ReadsTheGoldenVector) {
  ASSERT_EQ(golden_file().size(), 216U);
  const auto parts = parse_packed(SharedBytes::copy_of(golden_file()), "d.motley");
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->size, 3U);
  EXPECT_EQ(parts->sample_dtype, DType::u8);
  EXPECT_THAT(parts->sample_shape, ElementsAre(2));
  EXPECT_THAT(parts->classes, ElementsAre(0, 2, 1));
  EXPECT_EQ(Bytes(parts->samples.bytes().begin(), parts->samples.bytes().end()), from_hex("010203040506"));
}

TEST(Packed, RefusesEveryTruncationAndSurplus) {
  const Bytes bytes = golden_file();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(packed_complaint({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), "accepted") << size;
  }
  EXPECT_THAT(packed_complaint(bytes + Bytes(1)), HasSubstr("216 bytes"));
}

TEST(Packed, RefusesEveryDamagedByteButPadding) {
  for (std::size_t i = 0; i < golden_file().size(); ++i) {
    if (i >= 134 && i < 192) continue;  // padding
    Bytes bytes = golden_file();
    bytes[i] ^= std::byte{0x40};
    EXPECT_NE(packed_complaint(bytes), "accepted") << i;
  }
}

TEST(Packed, NamesTheFieldThatIsWrong) {
  const auto with = [](std::size_t at, const char* hex) {
    Bytes bytes = golden_file();
    const Bytes put = from_hex(hex);
    std::copy(put.begin(), put.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    fix_header(bytes);
    return packed_complaint(bytes);
  };
  EXPECT_THAT(with(8, "02000000"), HasSubstr("found version 2"));
  EXPECT_THAT(with(12, "02"), HasSubstr("sample type"));
  EXPECT_THAT(with(13, "02"), HasSubstr("target kind"));
  EXPECT_THAT(with(14, "00"), HasSubstr("dimensions"));
  EXPECT_THAT(with(14, "09"), HasSubstr("dimensions"));
  EXPECT_THAT(with(16, "00000000"), HasSubstr("target element"));
  EXPECT_THAT(with(16, "02000000"), HasSubstr("target element"));
  EXPECT_THAT(with(24, "0000000000000000"), HasSubstr("samples at byte 24"));
  EXPECT_THAT(with(24, "ffffffffffffffff"), HasSubstr("samples at byte 24"));
  EXPECT_THAT(with(24, "0400000000000000"), HasSubstr("bytes for 4 samples"));
  EXPECT_THAT(with(32, "0400000000000000"), HasSubstr("3 classes at byte 32"));
  EXPECT_THAT(with(40, "0000000000000000"), HasSubstr("sample shape"));
  EXPECT_THAT(with(40, "00000000000000ff"), HasSubstr("sample shape"));
}

TEST(Packed, RefusesClassesOutOfRange) {
  Bytes bytes = golden_file();
  bytes[199] = std::byte{0x80};  // the first class becomes negative
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(&bytes[192]), 24);
  store_le(&bytes[108], static_cast<std::uint32_t>(crc));
  fix_header(bytes);
  EXPECT_THAT(packed_complaint(bytes), HasSubstr("at sample 0"));
}

}  // namespace
}  // namespace motley::data
