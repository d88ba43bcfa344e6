#include "base/xxh64.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace motley {
namespace {

std::uint64_t hash(std::string_view text, std::uint64_t seed = 0) {
  return xxh64(std::as_bytes(std::span(text)), seed);
}

// Vectors of the reference implementation.
TEST(Xxh64, MatchesTheReference) {
  EXPECT_EQ(hash(""), 0xEF46DB3751D8E999U);
  EXPECT_EQ(hash("a"), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(hash("abc"), 0x44BC2CF5AD770999U);
  EXPECT_EQ(hash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1U);
  EXPECT_EQ(hash("I want an unsigned 64-bit seed!", 0), 0xD4CB0A70A2B8C7C1U);
  EXPECT_EQ(hash("I want an unsigned 64-bit seed!", 1), 0xCE5087F12470D961U);
}

TEST(Xxh64, ChangesWithEveryByteAndLength) {
  std::vector<std::byte> bytes(100, std::byte{0});
  const std::uint64_t before = xxh64(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{1};
    ASSERT_NE(xxh64(bytes), before) << i;
    bytes[i] = std::byte{0};
    ASSERT_NE(xxh64(std::span(bytes).first(i)), before) << i;
  }
}

}  // namespace
}  // namespace motley
