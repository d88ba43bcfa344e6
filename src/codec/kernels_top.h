#pragma once
// top64: of each block of 4,096 elements the 64 largest, each with its place. Included by kernels_loops.h alone, and
// under its rules. The largest are found on the bits of magnitudes, so that every processor finds the same; of equal
// ones the first.

#include "codec/kernels_bits.h"

namespace motley::codec {
namespace {

struct Top64 {
  static constexpr BlockShape kShape = kTop64Block;
  static constexpr float kLevels = 7;
  static constexpr Bits16 kPlace = 0x0FFF;  // of an entry; above it the code, plus 8
};

struct Least {
  Bits32 magnitude = 0;    // of the smallest that is kept
  std::size_t equals = 0;  // how many of just that are
};

/// Of `count` magnitudes the `keep` largest: digit by digit, from the highest one.
inline Least least_kept(const Bits32* __restrict magnitudes, std::size_t count, std::size_t keep) noexcept {
  struct Digit {
    unsigned shift, bits;
  };
  constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};
  Bits32 known = 0, mask = 0;
  for (const Digit digit : kDigits) {
    std::uint16_t having[1U << 11] = {};
    const Bits32 last = (1U << digit.bits) - 1;
    for (std::size_t i = 0; i < count; ++i)
      if ((magnitudes[i] & mask) == known) ++having[magnitudes[i] >> digit.shift & last];
    Bits32 at = last;
    while (keep > having[at]) keep -= having[at--];
    known |= at << digit.shift;
    mask |= last << digit.shift;
  }
  return {known, keep};
}

inline void encode_nothing(std::size_t keep, std::byte* entries) noexcept {
  for (std::size_t i = 0; i < keep; ++i) store16(entries + 2 * i, static_cast<Bits16>(i | 8U << 12));
}

template <bool kLeft>
Bits16 encode_top_block(const float* __restrict values, std::size_t count, std::byte* __restrict entries,
                        float* __restrict left) noexcept {
  Bits32 magnitudes[Top64::kShape.elements];
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::int32_t>(bits_of(values[i]) & kNoSign);
    magnitudes[i] = static_cast<Bits32>(bits);
    largest = bits > largest ? bits : largest;
  }
  const Bits16 scale_bits = scale_for<HalfSteps>(largest, Top64::kLevels);
  if (scale_bits == kNotFinite) {
    encode_nothing(top_of(count), entries);
    if constexpr (kLeft)
      for (std::size_t i = 0; i < count; ++i) left[i] = 0;
    return kNotFinite;
  }
  const float scale = widened(scale_bits);
  const float inverse = scale_bits == 0 ? 0 : 1 / scale;
  Least least = least_kept(magnitudes, count, top_of(count));
  for (std::size_t i = 0; i < count; ++i) {
    const bool equal = magnitudes[i] == least.magnitude && least.equals > 0;
    if constexpr (kLeft) left[i] = values[i];
    if (magnitudes[i] <= least.magnitude && !equal) continue;
    if (equal) --least.equals;
    const float moved = values[i] * inverse + kRound;
    const auto code = static_cast<std::int32_t>(bits_of(moved) - kRoundBits);
    store16(entries, static_cast<Bits16>(i | static_cast<std::size_t>(code + 8) << 12));
    entries += 2;
    if constexpr (kLeft) left[i] = values[i] - (moved - kRound) * scale;
  }
  return scale_bits;
}

template <bool kResidual, bool kLeft>
void encode_top(const float* __restrict values, const float* __restrict residual, std::size_t count,
                std::byte* __restrict body, float* __restrict left) noexcept {
  constexpr std::size_t kElements = Top64::kShape.elements;
  std::byte* entries = body + (count + kElements - 1) / kElements;
  float sums[kElements];
  for (std::size_t first = 0; first < count; first += kElements) {
    const std::size_t width = count - first < kElements ? count - first : kElements;
    for (std::size_t i = 0; i < width; ++i)
      sums[i] = kResidual ? values[first + i] + residual[first + i] : values[first + i];
    *body = HalfSteps::byte_of(encode_top_block<kLeft>(sums, width, entries, kLeft ? left + first : nullptr));
    ++body;
    entries += Top64::kShape.bytes;
  }
}

// Only the last block may have fewer entries than all others.
template <class Into>
void decode_top(const Body& body, std::size_t first, std::size_t count, float* __restrict out) noexcept {
  constexpr std::size_t kElements = Top64::kShape.elements;
  const std::size_t blocks = (body.elements + kElements - 1) / kElements, end = first + count;
  if constexpr (Into::kReplaces)
    for (std::size_t i = 0; i < count; ++i) out[i] = 0;
  for (std::size_t block = first / kElements; block * kElements < end; ++block) {
    const std::size_t begin = block * kElements;
    const std::size_t width = body.elements - begin < kElements ? body.elements - begin : kElements;
    const std::byte* entries = body.bytes + blocks + block * Top64::kShape.bytes;
    const float scale = HalfSteps::scale_of(body.bytes[block]);
    for (std::size_t i = 0; i < top_of(width); ++i) {
      const Bits16 entry = load16(entries + 2 * i);
      const std::size_t at = begin + (entry & Top64::kPlace);
      if (at < first || at >= end) continue;
      Into{}(out[at - first], static_cast<float>((entry >> 12) - 8) * scale);
    }
  }
}

}  // namespace
}  // namespace motley::codec
