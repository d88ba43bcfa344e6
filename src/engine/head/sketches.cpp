#include "engine/head/sketches.h"

#include <algorithm>
#include <cmath>

#include "base/count_sketch.h"

namespace motley::engine {
namespace {

// Part of the norm that two right answers may differ in: TF32, which cards convolve in by default, comes to some
// hundredths, and bf16, which shares to be compared are asked for in at the coarsest, to a hundredth.
constexpr double kTolerance = 0.1;

// What is this small beside the whole gradient is rounding, as that of the key biases of an attention.
constexpr double kNothing = 1e-4;

}  // namespace

void Sketches::add(std::uint64_t lease, ChunkId chunk, ChunkKind kind, const codec::Encoded& values) {
  if (find(lease, chunk) != nullptr) return;
  Sketch sketch{.lease = lease, .chunk = chunk, .kind = kind};
  SketchPlaces where{};
  std::array<float, codec::Encoded::kStride> piece{};
  for (std::size_t first = 0; first < values.elements(); first += piece.size()) {
    const std::span part = std::span(piece).first(std::min(piece.size(), values.elements() - first));
    values.decode(first, part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (i % kSketchBlock == 0) where = sketch_places(secret_, first + i, chunk);
      const double value = part[i];
      sketch.square += value * value;
      motley::sketch(sketch.sums, where[i % kSketchBlock], value);
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
