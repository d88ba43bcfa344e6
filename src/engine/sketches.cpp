#include "engine/sketches.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/philox.h"

namespace motley::engine {
namespace {

// Part of the norm that two right answers may differ in: TF32, which cards convolve in by default, comes to some
// hundredths, and bf16, which shares to be compared are asked for in at the coarsest, to a hundredth.
constexpr double kTolerance = 0.1;

// What is this small beside the whole gradient is rounding, as that of the key biases of an attention.
constexpr double kNothing = 1e-4;

// For each of as many elements a byte: the sum and the sign.
constexpr std::size_t kBytes = 16;

std::array<std::uint8_t, kBytes> places(std::uint64_t secret, ChunkId chunk, std::size_t first) noexcept {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return std::bit_cast<std::array<std::uint8_t, kBytes>>(
      philox4x32({low(first), chunk, 0, 0}, {low(secret), low(secret >> 32)}));
}

}  // namespace

void Sketches::add(std::uint64_t lease, ChunkId chunk, ChunkKind kind, const codec::Encoded& values) {
  if (find(lease, chunk) != nullptr) return;
  Sketch sketch{.lease = lease, .chunk = chunk, .kind = kind};
  std::array<std::uint8_t, kBytes> where{};
  std::array<float, codec::Encoded::kStride> piece{};
  for (std::size_t first = 0; first < values.elements(); first += piece.size()) {
    const std::span part = std::span(piece).first(std::min(piece.size(), values.elements() - first));
    values.decode(first, part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (i % kBytes == 0) where = places(secret_, chunk, first + i);
      const double value = part[i];
      const std::uint8_t place = where[i % kBytes];
      sketch.square += value * value;
      sketch.sums[place % kSums] += (place & 128U) != 0 ? value : -value;
    }
  }
  sketches_.push_back(sketch);
}

const Sketches::Sketch* Sketches::find(std::uint64_t lease, ChunkId chunk) const noexcept {
  const auto found = std::ranges::find_if(
      sketches_, [&](const Sketch& sketch) { return sketch.lease == lease && sketch.chunk == chunk; });
  return found == sketches_.end() ? nullptr : &*found;
}

double Sketches::square(std::uint64_t lease) const noexcept {
  double sum = 0;
  for (const Sketch& sketch : sketches_)
    if (sketch.lease == lease && sketch.kind != ChunkKind::statistics) sum += sketch.square;
  return sum;
}

bool Sketches::differ(std::uint64_t one, std::uint64_t other, ChunkId chunk) const noexcept {
  const Sketch *a = find(one, chunk), *b = find(other, chunk);
  if (a == nullptr || b == nullptr) return false;
  double apart = 0;
  for (std::size_t i = 0; i < kSums; ++i) apart += (a->sums[i] - b->sums[i]) * (a->sums[i] - b->sums[i]);
  const double allowed = kTolerance * std::sqrt(std::max(a->square, b->square));
  const double nothing =
      a->kind == ChunkKind::statistics ? 0 : kNothing * std::sqrt(std::min(square(one), square(other)));
  return !(std::sqrt(apart) <= std::max(allowed, nothing));
}

}  // namespace motley::engine
