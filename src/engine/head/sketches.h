#pragma once
// Short sums of contributions, by which two of them are compared without keeping their bytes: each element is added,
// with a sign, to one of 64 sums, both chosen by a secret of this process (a count sketch: Charikar, Chen and
// Farach-Colton 2002). The squares of the differences of the sums add up to about those of the elements, to a fifth.
// Value type; one thread at a time.

#include <array>
#include <cstdint>
#include <vector>

#include "codec/codec.h"
#include "motley/layout.h"

namespace motley::engine {

class Sketches {
 public:
  explicit Sketches(std::uint64_t secret) : secret_(secret) {}

  /// A chunk of the contribution `lease`.
  void add(std::uint64_t lease, ChunkId chunk, ChunkKind kind, const codec::Encoded& values);
  /// By more than a tenth of the norm: rounding, other micro-batches, other devices and bf16 come to less. False where
  /// one of them is not there.
  [[nodiscard]] bool differ(std::uint64_t one, std::uint64_t other, ChunkId chunk) const noexcept;
  void clear() noexcept { sketches_.clear(); }

 private:
  static constexpr std::size_t kSums = 64;
  struct Sketch {
    std::uint64_t lease = 0;
    ChunkId chunk = 0;
    ChunkKind kind = ChunkKind::small;
    double square = 0;  // of the norm
    std::array<double, kSums> sums{};
  };
  [[nodiscard]] const Sketch* find(std::uint64_t lease, ChunkId chunk) const noexcept;
  /// Of all gradients of the contribution that are there.
  [[nodiscard]] double square(std::uint64_t lease) const noexcept;

  std::uint64_t secret_;
  std::vector<Sketch> sketches_;
};

}  // namespace motley::engine
