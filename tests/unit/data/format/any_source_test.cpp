// Formats read any source: here one that is no file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../fixtures.h"
#include "data/format/assemble.h"
#include "data/format/text.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;
using test::from_hex;
using test::idx;
using test::Memory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AnySource, HoldsIdxPlainAndPacked) {
  const Memory images("bucket/images", test::gzip(idx({2, 1, 2}, from_hex("01020304"))));
  const Memory labels("bucket/labels", idx({2}, from_hex("0001")));
  const auto x = read_array(images);
  const auto y = read_array(labels);
  ASSERT_TRUE(x && y);
  const auto parts = assemble(*x, *y);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_THAT(parts->sample_shape, ElementsAre(1, 1, 2));
  EXPECT_THAT(parts->classes, ElementsAre(0, 1));
  EXPECT_EQ(Bytes(parts->samples.bytes().begin(), parts->samples.bytes().end()), from_hex("01020304"));
}

TEST(AnySource, IsNamedWhereItsBytesAreDamaged) {
  const auto array = read_array(Memory("bucket/images", from_hex("00000803")));
  ASSERT_FALSE(array);
  EXPECT_THAT(array.error().message, HasSubstr("bucket/images: expected"));
}

TEST(AnySource, GivesATextNoMoreThanItsPart) {
  const Memory novel("bucket/novel", bytes_of_text(std::string(41, 'a')));
  OpenOptions options;
  options.block = 2;
  options.hold_out = true;
  const auto held_out = read_text(novel, "test", options);
  ASSERT_TRUE(held_out) << held_out.error().message;
  EXPECT_EQ((*held_out)->size(), 2U);
  EXPECT_EQ(novel.read_bytes(), 5U);
}

}  // namespace
}  // namespace motley::data
