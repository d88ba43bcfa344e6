#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/little_endian.h"

namespace motley {
namespace {

// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Crc32c, GoldenValues) {
  std::vector<std::byte> bytes(32);
  EXPECT_EQ(crc32c(bytes), 0x8A9136AAU);
  bytes.assign(32, std::byte{0xFF});
  EXPECT_EQ(crc32c(bytes), 0x62A8AB43U);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46DD794EU);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(crc32c(bytes), 0x113FDB5CU);
  EXPECT_EQ(crc32c(as_bytes(std::string("123456789"))), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

// Bit by bit, as the polynomial says: what the table and the processor's instruction must both agree with.
std::uint32_t slowly(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

TEST(Crc32c, EveryLengthAndAlignment) {
  std::vector<std::byte> bytes(96);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t size = 0; start + size <= bytes.size(); ++size) {
      const auto piece = std::span(bytes).subspan(start, size);
      ASSERT_EQ(crc32c(piece), slowly(piece)) << start << " " << size;
    }
  }
}

// Long inputs go through three streams at a time, 12 KiB a turn.
TEST(Crc32c, LengthsAroundWholeTurns) {
  constexpr std::size_t kTurn = std::size_t{3} * 4096;
  std::vector<std::byte> bytes(2 * kTurn + 20);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i * 29 + i / 251);
  for (const std::size_t size : {kTurn - 1, kTurn, kTurn + 1, kTurn + 8, 2 * kTurn - 3, 2 * kTurn, 2 * kTurn + 17}) {
    for (std::size_t start = 0; start < 3; ++start) {
      const auto piece = std::span(bytes).subspan(start, size);
      ASSERT_EQ(crc32c(piece), slowly(piece)) << start << " " << size;
      ASSERT_EQ(crc32c(piece.subspan(5), crc32c(piece.first(5))), slowly(piece)) << start << " " << size;
    }
  }
}

TEST(Crc32c, GoesOnOverPieces) {
  const std::string text = "every sample is used exactly once";
  const auto bytes = as_bytes(text);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), crc32c(bytes)) << cut;
  }
}

}  // namespace
}  // namespace motley
