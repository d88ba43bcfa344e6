#include "plan/time_model.h"

#include <algorithm>
#include <cmath>

namespace motley::plan {
namespace {

// Deviations, relative to the time. What a device does varies by a part of its noise from pass to pass.
constexpr double kTogether = 0.04;  // of the noise
constexpr double kTogetherMin = 0.0005;
constexpr double kRatio = 0.001;       // of how the time divides, from pass to pass
constexpr double kFixedUnknown = 0.1;  // likewise after one record
constexpr double kFixedKnown = 0.05;   // after an earlier run
constexpr double kKnown = 0.05;        // an earlier run's time
constexpr double kLeast = 0.02;        // a record is off by that at the least
constexpr std::uint32_t kKnownRecords = 3;
// A processor with a quota, or one that turbos, is fast for some milliseconds: a short record says little about what it
// can keep up.
constexpr double kLong = 0.1;  // seconds
constexpr double kFasterByShort = 1.3;
constexpr double kPerSampleShare = 0.02;  // at least this part of the time grows with the samples
constexpr double kShortestSeconds = 1e-15, kLongestSeconds = 3.2e7;  // seconds: a year

double square_of(double x) noexcept { return x * x; }

}  // namespace

TimeModel::TimeModel(const Affine& known) noexcept : state_(known), records_(kKnownRecords) {
  vary(square_of(kKnown));
  vary_ratio(square_of(kFixedKnown), std::max(1.0, known.fixed / known.per_sample));
}

double TimeModel::deviation() const noexcept { return std::sqrt(innovations_.noise()); }

void TimeModel::record(std::uint64_t samples, double seconds) noexcept {
  if (samples == 0 || !std::isfinite(seconds) || seconds <= 0) return;
  const auto b = static_cast<double>(samples);
  seconds = std::clamp(seconds, kShortestSeconds, kLongestSeconds);
  if (!state_) return begin(b, seconds);
  const double expected = state_->seconds(b);
  if (seconds < kLong) seconds = std::max(seconds, expected / kFasterByShort);
  vary(2.0 / ++records_ * variance(b));
  vary(std::max(square_of(kTogetherMin), square_of(kTogether) * innovations_.noise()));
  vary_ratio(square_of(kRatio), b);
  Innovation innovation = innovations_.judge((seconds - expected) / expected, variance(b));
  innovation.noise = std::max(innovation.noise, square_of(kLeast));
  update(b, innovation);
}

void TimeModel::begin(double samples, double seconds) noexcept {
  state_ = Affine{0, seconds / samples};
  vary(innovations_.noise());
  vary_ratio(square_of(kFixedUnknown), samples);
}

void TimeModel::vary(double variance) noexcept {
  fixed2_ += variance * state_->fixed * state_->fixed;
  both_ += variance * state_->fixed * state_->per_sample;
  per_sample2_ += variance * state_->per_sample * state_->per_sample;
}

void TimeModel::vary_ratio(double variance, double samples) noexcept {
  const double seconds2 = variance * square_of(state_->seconds(samples));
  fixed2_ += seconds2;
  both_ -= seconds2 / samples;
  per_sample2_ += seconds2 / square_of(samples);
}

double TimeModel::variance(double samples) const noexcept {
  const double absolute = fixed2_ + 2 * samples * both_ + samples * samples * per_sample2_;
  return std::max(0.0, absolute) / square_of(state_->seconds(samples));
}

// A throttled device is slower in all it does: how its time divides stays.
void TimeModel::rescale(double factor) noexcept {
  state_->fixed *= factor;
  state_->per_sample *= factor;
  for (double* part : {&fixed2_, &both_, &per_sample2_}) *part *= factor * factor;
}

void TimeModel::update(double samples, const Innovation& innovation) noexcept {
  if (innovation.change) {
    rescale(1 + innovation.off);
    return vary(innovation.noise);
  }
  vary(innovation.grown);
  const double expected = state_->seconds(samples);
  const double fixed = fixed2_ + samples * both_, per_sample = both_ + samples * per_sample2_;
  const double all = (variance(samples) + innovation.noise) * square_of(expected);
  const double off = innovation.off * expected / all;
  state_->fixed += fixed * off;
  state_->per_sample += per_sample * off;
  fixed2_ -= fixed * fixed / all;
  both_ -= fixed * per_sample / all;
  per_sample2_ -= per_sample * per_sample / all;
  bound(samples);
}

// The nearest state that can be, by the covariance; it says no more of what was bounded than before.
void TimeModel::bound(double samples) noexcept {
  if (state_->fixed < 0) {
    if (fixed2_ > 0) state_->per_sample -= state_->fixed * both_ / fixed2_;
    state_->fixed = 0;
  }
  const double seconds = std::max(kShortestSeconds, state_->seconds(samples));
  const double least = kPerSampleShare * seconds / samples;
  if (state_->per_sample < least) *state_ = {seconds - least * samples, least};
}

}  // namespace motley::plan
