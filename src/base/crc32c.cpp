#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
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

// The instruction yields a result every cycle but takes three, so three streams run side by side. Their remainders are
// joined by shifting: multiplying by x^(8 * bytes that follow) modulo the polynomial.
constexpr std::size_t kStreamBytes = 4096;

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    product ^= b & (0U - (a >> bit & 1U));
    b = (b >> 1) ^ (0x82F63B78U & (0U - (b & 1U)));
  }
  return product;
}

/// x to the power 2^doublings.
constexpr std::uint32_t power_of_x(int doublings) noexcept {
  std::uint32_t power = std::uint32_t{1} << 30;
  for (; doublings > 0; --doublings) power = multiply(power, power);
  return power;
}
constexpr std::uint32_t kShiftOne = power_of_x(15);  // 8 * 4096 bits
constexpr std::uint32_t kShiftTwo = power_of_x(16);
static_assert(kStreamBytes * 8 == std::size_t{1} << 15);

#if defined(__x86_64__)
#define MOTLEY_CRC_TARGET __attribute__((target("sse4.2,crc32")))
MOTLEY_CRC_TARGET inline std::uint64_t step(std::uint64_t crc, std::uint64_t word) noexcept {
  return _mm_crc32_u64(crc, word);
}
bool has_hardware() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__ARM_FEATURE_CRC32) || defined(__linux__) && defined(__aarch64__)
#define MOTLEY_CRC_TARGET __attribute__((target("+crc")))
MOTLEY_CRC_TARGET inline std::uint64_t step(std::uint64_t crc, std::uint64_t word) noexcept {
  return __crc32cd(static_cast<std::uint32_t>(crc), word);
}
#if defined(__ARM_FEATURE_CRC32)
bool has_hardware() noexcept { return true; }
#else  // not part of the first 64-bit ARM, for which a package of Linux is built
bool has_hardware() noexcept { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif
#endif

#if defined(MOTLEY_CRC_TARGET)
std::uint64_t load(const std::byte* from) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

MOTLEY_CRC_TARGET std::uint32_t hardware(const std::byte* data, std::size_t size, std::uint32_t crc) noexcept {
  std::uint64_t first = crc;
  for (; size >= 3 * kStreamBytes; size -= 3 * kStreamBytes, data += 3 * kStreamBytes) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < kStreamBytes; i += 8) {
      first = step(first, load(data + i));
      second = step(second, load(data + kStreamBytes + i));
      third = step(third, load(data + 2 * kStreamBytes + i));
    }
    first = multiply(kShiftTwo, static_cast<std::uint32_t>(first)) ^
            multiply(kShiftOne, static_cast<std::uint32_t>(second)) ^ third;
  }
  for (; size >= 8; size -= 8, data += 8) first = step(first, load(data));
  return portable(data, size, static_cast<std::uint32_t>(first));
}
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
