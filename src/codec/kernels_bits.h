#pragma once
// What the loops of all codecs begin with. Included by kernels_loops.h alone, and under its rules.

#include "codec/kernels.h"

namespace motley::codec {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

using Bits16 = std::uint16_t;
using Bits32 = std::uint32_t;

constexpr Bits32 kExponent = 0x7F800000U;
constexpr Bits32 kNoSign = 0x7FFFFFFFU;
constexpr Bits16 kNotFinite = 0x7FC0;  // in place of the scale of a block that cannot be encoded
// Added to a number below 2^22 it leaves the nearest integer in the lowest bits.
constexpr float kRound = 0x1.8p23F;
constexpr Bits32 kRoundBits = 0x4B400000U;

inline Bits32 bits_of(float value) noexcept { return __builtin_bit_cast(Bits32, value); }
inline float float_of(Bits32 bits) noexcept { return __builtin_bit_cast(float, bits); }
inline Bits16 load16(const std::byte* from) noexcept {
  Bits16 bits = 0;
  __builtin_memcpy(&bits, from, sizeof bits);
  return bits;
}
inline void store16(std::byte* to, Bits16 bits) noexcept { __builtin_memcpy(to, &bits, sizeof bits); }
inline float widened(Bits16 bits) noexcept { return float_of(Bits32{bits} << 16); }

struct Set {
  void operator()(float& to, float value) const noexcept { to = value; }
};
struct Add {
  void operator()(float& to, float value) const noexcept { to += value; }
};

// Scales are the upper half of an fp32 while they are computed with, and a byte of a body.

/// Scales of gradients: 1 or 1.5 times a power of two, from 2^-64 to 2^63; their exponent and first bit, less those of
/// the smallest. Every byte but kMark is one.
struct HalfSteps {
  static constexpr Bits32 kDropped = 0x3FFFFF;  // by rounding up
  static constexpr Bits16 kMin = 0x1F80;
  static constexpr float kMax = 0x1p63F;
  static constexpr std::byte kMark{255};  // of a block that is not finite
  static std::byte byte_of(Bits16 scale) noexcept {
    if (scale == kNotFinite) return kMark;
    return static_cast<std::byte>(scale == 0 ? 0 : (scale - kMin) >> 6);
  }
  static float scale_of(std::byte byte) noexcept { return float_of((static_cast<Bits32>(byte) + (kMin >> 6)) << 22); }
};

/// Scales of deltas: powers of two from 2^-100, so that what is computed with them stays clear of denormal numbers, to
/// 2^120, so that it stays finite, or zero; the exponent of an fp32.
struct PowerOfTwo {
  static constexpr Bits32 kDropped = 0x7FFFFF;
  static constexpr Bits16 kMin = 0x0D80;
  static constexpr float kMax = 0x1p120F;
  static constexpr Bits32 kByteMin = kMin >> 7, kByteMax = 247;
  static std::byte byte_of(Bits16 scale) noexcept { return static_cast<std::byte>(scale >> 7 & 0xFF); }
  static float scale_of(std::byte byte) noexcept { return float_of(static_cast<Bits32>(byte) << 23); }
};

/// Of a block whose largest magnitude has these bits (NaN has the largest of all). Rounded up, so that no code is
/// beyond the levels.
template <class Scale>
Bits16 scale_for(std::int32_t largest, float levels) noexcept {
  if (largest == 0) return 0;
  const auto bits = static_cast<Bits32>(largest);
  if (bits > bits_of(levels * Scale::kMax)) return kNotFinite;
  const Bits32 up = (bits_of(float_of(bits) / levels) + Scale::kDropped) & ~Scale::kDropped;
  const auto scale = static_cast<Bits16>(up >> 16);
  return scale < Scale::kMin ? Scale::kMin : scale;
}

}  // namespace
}  // namespace motley::codec
