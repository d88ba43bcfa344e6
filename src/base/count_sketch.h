#pragma once
// Count sketches (Charikar, Chen, Farach-Colton 2002): each element is added, with a sign, to one of a few sums, both
// at random. The squares of the sums add up to about those of the elements, and sketches of a difference are the
// difference of sketches. Equal on every machine. Pure.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace motley {

/// Where so many elements go, a byte for each.
constexpr std::size_t kSketchBlock = 16;
using SketchPlaces = std::array<std::uint8_t, kSketchBlock>;

/// Of block `at` of a stream.
inline SketchPlaces sketch_places(std::uint64_t key, std::uint64_t at, std::uint32_t stream) noexcept {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return std::bit_cast<SketchPlaces>(philox4x32({low(at), stream, low(at >> 32), 0}, {low(key), low(key >> 32)}));
}

/// REQUIRES a power of two of sums, 128 at the most.
inline void sketch(std::span<double> sums, std::uint8_t place, double value) noexcept {
  sums[place % sums.size()] += (place & 128U) != 0 ? value : -value;
}

}  // namespace motley
