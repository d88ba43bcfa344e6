#pragma once
// Whether steps of one kind are shorter than those of another: blocks of both in turn, because the speed of a machine
// drifts by more than is at stake, and as many pairs as it takes until the mean of the differences is beyond chance
// (Welch's test with Gaussian bounds). Pure.

#include <cstdint>
#include <optional>

namespace motley::plan {

/// Durations of some steps.
struct Durations {
  std::uint32_t count = 0;
  double mean = 0, squares = 0;  // of the differences from the mean
  void add(double seconds) noexcept;
};

/// What is gained of a step, and the variance of that.
struct Gain {
  double mean = 0, variance = 0;
};
/// Of steps `with` something beside those `without` it. REQUIRES both have some.
Gain gain(const Durations& with, const Durations& without) noexcept;

/// One in a hundred is further off, on one side, in standard errors.
inline constexpr double kBeyondChance = 2.33;

class PairedBlocks {
 public:
  /// After so many pairs what was not beyond chance counts as a gain from `least` on.
  PairedBlocks(std::uint32_t pairs_max, double least) noexcept : pairs_max_(pairs_max), least_(least) {}

  /// One more pair. Returns whether it is worth it, once that is known, and begins anew then.
  std::optional<bool> add(const Gain& pair) noexcept;
  /// Of the pairs of the newest answer, or so far.
  [[nodiscard]] double mean() const noexcept { return mean_; }

 private:
  std::uint32_t pairs_max_;
  double least_;
  std::uint32_t pairs_ = 0;
  double gain_ = 0, variance_ = 0;  // sums
  double mean_ = 0;
};

}  // namespace motley::plan
