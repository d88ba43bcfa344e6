#pragma once
// How much the gradients of single samples differ, from the norms of the parts of a step, and what batch that is worth
// (McCandlish et al., "An Empirical Model of Large-Batch Training", 1812.06162). Pure.

#include <cstdint>
#include <optional>
#include <span>

namespace motley::plan {

/// A contribution: the sum of the gradients of its loss-bearing items.
struct PartNorm {
  double weight = 0;  // items in the sum
  double square = 0;  // squared norm of the sum
};

/// What one step says. Either number may be negative: only their means mean something.
struct NoiseEstimate {
  double variance = 0;  // trace of the covariance of the gradient of one sample
  double signal = 0;    // squared norm of the gradient over all data
};

/// Unbiased whatever the sizes of the parts, as long as samples are alike in weight: with w_i = weight_i / sum and n
/// parts of mean gradients g_i, variance = samples / (n - 1) · (sum w_i |g_i|² - |g|²) and
/// signal = (n |g|² - sum w_i |g_i|²) / (n - 1). `mean_square` is |g|², of the mean over the whole step, and `samples`
/// the step's: items of one sample (the letters of a text) are no independent draws, so it is samples that are counted.
/// Empty with fewer than two parts that weigh anything, or where a number is not finite.
std::optional<NoiseEstimate> noise_estimate(std::span<const PartNorm> parts, double mean_square,
                                            double samples) noexcept;

/// The simple noise scale tr Σ / |G|², in samples: a batch of that size has as much noise as signal. Moving means
/// follow it while the weights change.
class NoiseScale {
 public:
  void record(const NoiseEstimate& estimate) noexcept;
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Empty until the mean signal stands out of its own error.
  [[nodiscard]] std::optional<double> samples() const noexcept;

 private:
  std::uint64_t records_ = 0;
  // Exponentially weighted sums; dividing by weight_ corrects their start at zero.
  double weight_ = 0, squared_weight_ = 0, variance_ = 0, signal_ = 0, squared_signal_ = 0;
};

/// The batch that makes the most progress a second, sqrt(lost_samples · noise_scale): a step of B samples takes
/// (B + lost_samples) / speed and is worth B / (B + noise_scale).
double useful_batch(double lost_samples, double noise_scale) noexcept;

}  // namespace motley::plan
