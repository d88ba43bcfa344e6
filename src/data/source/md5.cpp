#include "data/source/md5.h"

#include <algorithm>
#include <bit>

#include "base/format.h"
#include "base/little_endian.h"

namespace motley::data {
namespace {

constexpr std::array<int, 16> kRotations{7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

// floor(2^32 * |sin(i + 1)|), RFC 1321.
constexpr std::array<std::uint32_t, 64> kSines{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

}  // namespace

void Md5::block(const std::byte* bytes) noexcept {
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = load_le<std::uint32_t>(bytes + 4 * i);
  auto [a, b, c, d] = state_;
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t mixed = 0;
    std::uint32_t word = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d), word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c), word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d, word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d), word = 7 * i;
        break;
    }
    const std::uint32_t sum = a + mixed + kSines[i] + words[word % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kRotations[i / 16 * 4 + i % 4]);
  }
  state_[0] += a;
  state_[1] += b;
  state_[2] += c;
  state_[3] += d;
}

void Md5::add(std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t used = size_ % pending_.size();
    const std::size_t count = std::min(bytes.size(), pending_.size() - used);
    std::copy_n(bytes.begin(), count, pending_.begin() + static_cast<std::ptrdiff_t>(used));
    size_ += count;
    bytes = bytes.subspan(count);
    if (used + count == pending_.size()) block(pending_.data());
  }
}

std::string Md5::finish() {
  std::array<std::byte, 8> bits{};
  store_le(bits.data(), size_ * 8);
  std::array<std::byte, 64> padding{std::byte{0x80}};
  const std::size_t used = size_ % 64;
  add(std::span(padding).first((used < 56 ? 56 : 120) - used));
  add(bits);
  std::string text;
  for (const std::uint32_t word : state_) {
    for (int byte = 0; byte < 4; ++byte) {
      text += formatted("%02x", (word >> (8 * byte)) & 0xFFU);
    }
  }
  return text;
}

}  // namespace motley::data
