#pragma once
// Sample order: the permutation of a data set for an epoch as a pure function of (seed, epoch, size). A balanced
// Feistel network over the next power of four, keyed by Philox-4x32-10, with cycle walking; O(1) memory; specified with
// golden vectors in docs/formats/order.md so that anybody can repeat it. Immutable after construction; any thread may
// ask.

#include <cstdint>
#include <span>
#include <vector>

#include "base/batch_plan.h"

namespace motley::data {

class SampleOrder {
 public:
  static constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 40;

  /// REQUIRES 0 < size <= 2^40. `shuffle` false: the identity (evaluation).
  SampleOrder(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size, bool shuffle = true);
  /// The sample at `position`. REQUIRES position < size.
  [[nodiscard]] std::uint64_t at(std::uint64_t position) const noexcept;
  /// Fills out[i] = at(first + i). REQUIRES first + out.size() <= size.
  void fill(std::uint64_t first, std::span<std::uint64_t> out) const noexcept;

 private:
  /// One pass through the network for every value, in place; no cycle walking.
  void encrypt(std::span<std::uint64_t> values) const noexcept;
  void encrypt_by_table(std::span<std::uint64_t> values) const noexcept;
  void encrypt_by_lanes(std::span<std::uint64_t> values) const noexcept;

  std::uint64_t seed_, epoch_, size_;
  bool shuffle_;
  unsigned half_bits_ = 0;
  // Round outputs for every half, round after round; empty when the halves are too wide for a table of bounded size.
  std::vector<std::uint16_t> rounds_;
};

/// The samples at these positions, one span after the other. REQUIRES each fits.
std::vector<std::uint64_t> samples_at(std::span<const StepRange> spans, std::uint64_t seed, std::uint64_t size,
                                      bool shuffle);

}  // namespace motley::data
