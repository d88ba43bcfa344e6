#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace motley {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}
constexpr auto kTable = make_table();

std::uint32_t portable(const std::byte* data, std::size_t size, std::uint32_t crc) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint32_t>(data[i])) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t hardware(const std::byte* data, std::size_t size,
                                                         std::uint32_t crc) noexcept {
  std::uint64_t wide = crc;
  for (; size >= 8; size -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  return portable(data, size, static_cast<std::uint32_t>(wide));
}
bool has_hardware() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__ARM_FEATURE_CRC32)
std::uint32_t hardware(const std::byte* data, std::size_t size, std::uint32_t crc) noexcept {
  for (; size >= 8; size -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    crc = __crc32cd(crc, word);
  }
  return portable(data, size, crc);
}
bool has_hardware() noexcept { return true; }
#else
std::uint32_t hardware(const std::byte* data, std::size_t size, std::uint32_t crc) noexcept {
  return portable(data, size, crc);
}
bool has_hardware() noexcept { return false; }
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far) noexcept {
  static const bool fast = has_hardware();
  const std::uint32_t crc = ~so_far;
  return ~(fast ? hardware(bytes.data(), bytes.size(), crc) : portable(bytes.data(), bytes.size(), crc));
}

}  // namespace motley
