#include "base/little_endian.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace motley {
namespace {

TEST(LittleEndian, LowByteFirst) {
  std::array<std::byte, 8> bytes{};
  store_le<std::uint64_t>(bytes.data(), 0x0102030405060708);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), 8 - i);
  EXPECT_EQ(load_le<std::uint64_t>(bytes.data()), 0x0102030405060708U);
  EXPECT_EQ(load_le<std::uint32_t>(bytes.data()), 0x05060708U);
  EXPECT_EQ(load_le<std::uint16_t>(bytes.data()), 0x0708U);
  EXPECT_EQ(load_le<std::uint8_t>(bytes.data()), 0x08U);
}

template <class T>
void comes_back(T value) {
  std::array<std::byte, sizeof(T) + 2> bytes{};
  store_le<T>(bytes.data() + 1, value);  // no alignment asked
  EXPECT_EQ(load_le<T>(bytes.data() + 1), value);
  EXPECT_EQ(bytes.front(), std::byte{0});
  EXPECT_EQ(bytes.back(), std::byte{0});
}

TEST(LittleEndian, ComesBackAndStaysInItsBytes) {
  comes_back<std::uint8_t>(0xFF);
  comes_back<std::uint16_t>(0xFFFE);
  comes_back<std::uint32_t>(0x80000001);
  comes_back<std::uint64_t>(std::numeric_limits<std::uint64_t>::max());
  comes_back<std::uint64_t>(0x8000000000000001);
}

TEST(LittleEndian, TextsAsBytes) {
  const std::string text("a\0b", 3);
  const auto bytes = as_bytes(text);
  ASSERT_EQ(bytes.size(), 3U);
  EXPECT_EQ(bytes[0], std::byte{'a'});
  EXPECT_EQ(bytes[1], std::byte{0});
}

}  // namespace
}  // namespace motley
