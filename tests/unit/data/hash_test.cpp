#include <gtest/gtest.h>

#include "data/content_hash.h"
#include "data/md5.h"
#include "fixtures.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;

std::string md5(const Bytes& bytes) {
  Md5 hash;
  hash.add(bytes);
  return hash.finish();
}

TEST(Md5, MatchesTheVectorsOfRfc1321) {
  EXPECT_EQ(md5({}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5(bytes_of_text("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5(bytes_of_text("12345678901234567890123456789012345678901234567890123456789012345678901234567890")),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, DoesNotDependOnThePieces) {
  const Bytes all(300, std::byte{'x'});
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    Md5 hash;
    hash.add(std::span(all).first(cut));
    hash.add(std::span(all).subspan(cut));
    ASSERT_EQ(hash.finish(), md5(all)) << cut;
  }
}

// Vectors of the reference implementation.
TEST(Xxh64, MatchesTheReference) {
  EXPECT_EQ(xxh64({}), 0xEF46DB3751D8E999U);
  EXPECT_EQ(xxh64(bytes_of_text("a")), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(xxh64(bytes_of_text("abc")), 0x44BC2CF5AD770999U);
  EXPECT_EQ(xxh64(bytes_of_text("Nobody inspects the spammish repetition")), 0xFBCEA83C8A378BF1U);
  EXPECT_EQ(xxh64(bytes_of_text("I want an unsigned 64-bit seed!"), 0), 0xD4CB0A70A2B8C7C1U);
  EXPECT_EQ(xxh64(bytes_of_text("I want an unsigned 64-bit seed!"), 1), 0xCE5087F12470D961U);
}

TEST(Xxh64, ChangesWithEveryByteAndLength) {
  Bytes bytes(100, std::byte{0});
  const std::uint64_t before = xxh64(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{1};
    ASSERT_NE(xxh64(bytes), before) << i;
    bytes[i] = std::byte{0};
    ASSERT_NE(xxh64(std::span(bytes).first(i)), before) << i;
  }
}

}  // namespace
}  // namespace motley::data
