#include "data/format/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../fixtures.h"
#include "data/format/gzip.h"

namespace motley::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::operator+;
using test::Bytes;
using test::from_hex;

const Bytes kImages = from_hex("00000803 00000002 00000001 00000003 010203 fdfeff");

TEST(Idx, ReadsTheGoldenVector) {
  const auto array = parse_idx(kImages, "images");
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(array->dtype, DType::u8);
  EXPECT_THAT(array->shape, ElementsAre(2, 1, 3));
  EXPECT_EQ(Bytes(array->bytes.begin(), array->bytes.end()), from_hex("010203fdfeff"));
}

TEST(Idx, RefusesEveryTruncationAndSurplus) {
  for (std::size_t size = 0; size < kImages.size(); ++size) {
    const auto array = parse_idx(std::span(kImages).first(size), "images");
    ASSERT_FALSE(array) << size;
    EXPECT_EQ(array.error().code, ErrorCode::input);
    EXPECT_THAT(array.error().message, HasSubstr("images: expected"));
    EXPECT_FALSE(array.error().hint.empty());
  }
  EXPECT_FALSE(parse_idx(kImages + Bytes(1), "images"));
}

TEST(Idx, RefusesOtherTypesByName) {
  const auto array = parse_idx(from_hex("00000d01 00000001 00000000"), "floats");
  ASSERT_FALSE(array);
  EXPECT_THAT(array.error().message, HasSubstr("f32"));
  EXPECT_THAT(array.error().hint, HasSubstr(".npy"));
}

TEST(Idx, RefusesWhatItCannotHold) {
  EXPECT_FALSE(parse_idx(from_hex("00000800"), "no dimensions"));
  EXPECT_FALSE(parse_idx(from_hex("00000809") + Bytes(36), "nine dimensions"));
  EXPECT_FALSE(parse_idx(from_hex("01000801 00000000"), "another magic"));
  const auto huge = parse_idx(from_hex("00000804 ffffffff ffffffff ffffffff ffffffff"), "huge");
  ASSERT_FALSE(huge);
  EXPECT_THAT(huge.error().message, HasSubstr("too many bytes"));
}

TEST(Gzip, UnpacksWhatZlibPacked) {
  for (const std::size_t size : {0, 1, 1000, 100000}) {
    Bytes plain(size);
    for (std::size_t i = 0; i < size; ++i) plain[i] = static_cast<std::byte>(i * i >> 3);
    const auto unpacked = gunzip(test::gzip(plain), "file.gz");
    ASSERT_TRUE(unpacked) << unpacked.error().message;
    EXPECT_TRUE(std::ranges::equal(unpacked->bytes(), plain));
  }
}

TEST(Gzip, RefusesEveryTruncation) {
  const Bytes packed = test::gzip(kImages);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const auto unpacked = gunzip(std::span(packed).first(size), "file.gz");
    ASSERT_FALSE(unpacked) << size;
    EXPECT_EQ(unpacked.error().code, ErrorCode::input);
    EXPECT_THAT(unpacked.error().message, HasSubstr("file.gz: expected"));
  }
}

TEST(Gzip, RefusesEveryDamagedByteOfDataAndTrailer) {
  const Bytes packed = test::gzip(kImages);
  for (std::size_t i = 10; i < packed.size();
       ++i) {  // the ten bytes before hold a time and a system, which nobody checks
    Bytes damaged = packed;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(gunzip(damaged, "file.gz")) << i;
  }
}

TEST(Gzip, RefusesAnAnnouncementThatCannotBeTrueBeforeAllocating) {
  Bytes packed = test::gzip(kImages);
  for (std::size_t i = packed.size() - 4; i < packed.size(); ++i) packed[i] = std::byte{0xFF};
  const auto unpacked = gunzip(packed, "file.gz");
  ASSERT_FALSE(unpacked);
  EXPECT_THAT(unpacked.error().message, HasSubstr("4294967295"));
}

TEST(Gzip, RefusesWhatFollowsTheFirstMember) {
  // Same content twice: the trailer of the second fits the first.
  const auto twice = gunzip(test::gzip(kImages) + test::gzip(kImages), "file.gz");
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("one gzip member"));
}

}  // namespace
}  // namespace motley::data
