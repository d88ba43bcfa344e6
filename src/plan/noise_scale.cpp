#include "plan/noise_scale.h"

#include <cmath>

namespace motley::plan {
namespace {

constexpr double kKeep = 0.99;
constexpr std::uint64_t kRecordsMin = 20;
constexpr double kErrorsAboveZero = 2;

}  // namespace

std::optional<NoiseEstimate> noise_estimate(std::span<const PartNorm> parts, double mean_square,
                                            double samples) noexcept {
  double count = 0;
  double weight = 0;
  double squares = 0;  // sum of w_i |g_i|², times the weight of the step
  for (const PartNorm& part : parts) {
    if (!(part.weight > 0)) continue;
    ++count;
    weight += part.weight;
    squares += part.square / part.weight;
  }
  if (count < 2) return std::nullopt;
  const double mean = squares / weight;
  const NoiseEstimate estimate{.variance = samples / (count - 1) * (mean - mean_square),
                               .signal = (count * mean_square - mean) / (count - 1)};
  if (!std::isfinite(estimate.variance) || !std::isfinite(estimate.signal)) return std::nullopt;
  return estimate;
}

void NoiseScale::record(const NoiseEstimate& estimate) noexcept {
  const auto move = [](double& mean, double value, double fresh) { mean += fresh * (value - mean); };
  ++records_;
  move(weight_, 1, 1 - kKeep);
  move(variance_, estimate.variance, 1 - kKeep);
  move(signal_, estimate.signal, 1 - kKeep);
  move(squared_signal_, estimate.signal * estimate.signal, 1 - kKeep);
  squared_weight_ = kKeep * kKeep * squared_weight_ + (1 - kKeep) * (1 - kKeep);
}

std::optional<double> NoiseScale::samples() const noexcept {
  if (records_ < kRecordsMin) return std::nullopt;
  const double signal = signal_ / weight_;
  const double spread = squared_signal_ / weight_ - signal * signal;
  const double error = std::sqrt(std::fmax(0, spread) * squared_weight_) / weight_;
  if (!(signal > kErrorsAboveZero * error) || !(variance_ > 0)) return std::nullopt;
  return variance_ / signal_;
}

double useful_batch(double lost_samples, double noise_scale) noexcept { return std::sqrt(lost_samples * noise_scale); }

}  // namespace motley::plan
