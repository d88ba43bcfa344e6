#include "plan/innovations.h"

#include <algorithm>
#include <cmath>

namespace motley::plan {
namespace {

constexpr double kCut = 3;  // deviations
constexpr double kNewestNoise = 0.05;
constexpr double kKeptDrift = 0.85;
constexpr double kDriftCut = 1.5;  // deviations
// Three deviations of a mean of independent distances that are cut at kDriftCut, whose own deviation is 0.86.
constexpr double kDrifted = 3 * 0.285 * 0.86;

constexpr double kChangeLeast = 1e-3, kChangeMost = 1e3;  // times as long: what one change is at the most

}  // namespace

Innovations::Innovations(Noise noise) noexcept
    : noise_(noise.first * noise.first), least_(noise.least * noise.least), most_(noise.most * noise.most) {}

Innovation Innovations::judge(double off, double variance) noexcept {
  const double deviation = std::sqrt(variance + noise_);
  if (std::abs(off) > kCut * deviation && off * before_ > 0) return changed(off);
  Innovation judged{.off = std::clamp(off, -kCut * deviation, kCut * deviation), .noise = noise_};
  const double moved = judged.off * variance / (variance + noise_);
  before_ = judged.off == off ? 0 : (off - moved) / (1 + moved);
  drift_ = kKeptDrift * drift_ + (1 - kKeptDrift) * std::clamp(off / deviation, -kDriftCut, kDriftCut);
  if (std::abs(drift_) > kDrifted && off * drift_ > 0) {
    judged.grown = std::pow(drift_ * deviation, 2);
    drift_ = 0;
  }
  const double seen = judged.off * judged.off - variance;
  noise_ = std::clamp(noise_ + kNewestNoise * (seen - noise_), least_, most_);
  return judged;
}

// Two measurements that agree count as both; of two that do not, what is nearer to what was expected.
Innovation Innovations::changed(double off) noexcept {
  const double nearer = std::abs(off) < std::abs(before_) ? off : before_;
  const double scale = std::max(kChangeLeast, 1 + nearer);  // the noise is a part of what is measured
  const bool agree = std::pow((off - before_) / scale, 2) <= kCut * kCut * 2 * noise_;
  const double believed = std::clamp(agree ? (off + before_) / 2 : nearer, kChangeLeast - 1, kChangeMost - 1);
  before_ = drift_ = 0;
  return {.off = believed, .noise = agree ? noise_ / 2 : noise_, .change = true};
}

}  // namespace motley::plan
