#pragma once
// Sample order: the permutation of a data set for an epoch as a pure function of (seed, epoch, size). A balanced
// Feistel network over the next power of four, keyed by Philox-4x32-10, with cycle walking; O(1) memory; specified with
// golden vectors in docs/formats/order.md so that anybody can repeat it.

#include <cstdint>
#include <span>

namespace motley::data {

class SampleOrder {
 public:
  /// REQUIRES 0 < size <= 2^40. `shuffle` false: the identity (evaluation).
  SampleOrder(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size, bool shuffle = true);
  /// The sample at `position`. REQUIRES position < size.
  [[nodiscard]] std::uint64_t at(std::uint64_t position) const noexcept;
  /// Fills out[i] = at(first + i).
  void fill(std::uint64_t first, std::span<std::uint64_t> out) const noexcept;
};

}  // namespace motley::data
