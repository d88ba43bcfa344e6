#include "plan/paired_blocks.h"

#include <cmath>

namespace motley::plan {
namespace {

// How much durations vary is known of few of them: as if so many more had varied so much.
constexpr double kUsualNoise = 0.05, kUsualCount = 2;

double squared(double x) noexcept { return x * x; }

}  // namespace

void Durations::add(double seconds) noexcept {
  const double from = seconds - mean;
  mean += from / ++count;
  squares += from * (seconds - mean);
}

Gain gain(const Durations& with, const Durations& without) noexcept {
  const double usual = kUsualCount * (squared(kUsualNoise * with.mean) + squared(kUsualNoise * without.mean)) / 2;
  const double variance = (with.squares + without.squares + usual) / (with.count + without.count - 2 + kUsualCount);
  return {.mean = (without.mean - with.mean) / with.mean,
          .variance = variance * (1.0 / with.count + 1.0 / without.count) / squared(with.mean)};
}

std::optional<bool> PairedBlocks::add(const Gain& pair) noexcept {
  gain_ += pair.mean;
  variance_ += pair.variance;
  mean_ = gain_ / ++pairs_;
  const double chance = kBeyondChance * std::sqrt(variance_) / pairs_;
  if (mean_ >= -chance && mean_ <= chance && pairs_ < pairs_max_) return std::nullopt;
  const bool pays = mean_ > chance || (pairs_ == pairs_max_ && mean_ >= least_);
  pairs_ = 0;
  gain_ = variance_ = 0;
  return pays;
}

}  // namespace motley::plan
