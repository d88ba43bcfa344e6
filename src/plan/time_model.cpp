#include "plan/time_model.h"

#include <algorithm>
#include <cmath>

namespace motley::plan {
namespace {

constexpr double kForget = 0.97;
constexpr double kNewestDeviation = 0.1;
constexpr double kDeviationMin = 0.01;
constexpr double kDeviationMax = 0.3;
constexpr double kOutlier = 3;         // deviations
constexpr double kRatioWeight = 0.05;  // of the prior on fixed / per_sample, in records that are off by kQuiet
constexpr double kQuiet = 0.02;
constexpr double kAfterChange = 0.1;        // what the past still counts when the speed has changed
constexpr std::uint32_t kKnownRecords = 3;  // what an earlier run's model counts
// A processor with a quota, or one that turbos, is fast for some milliseconds: a short record says little about what it
// can keep up.
constexpr double kLong = 0.1;  // seconds
constexpr double kFasterByShort = 1.3;
constexpr double kPerSampleShare = 0.02;  // at least this part of the time grows with the samples

}  // namespace

TimeModel::TimeModel(const Affine& known) noexcept
    : records_(kKnownRecords), ratio_(known.fixed / known.per_sample), fit_(known) {
  // Two points on the line, a factor of two apart, say what it says.
  const double middle = std::max(1.0, known.fixed / known.per_sample);
  for (const double samples : {middle, 2 * middle}) {
    const double seconds = known.seconds(samples);
    const double weight = kKnownRecords / 2.0 / std::pow(seconds * deviation_, 2);
    weight_ += weight;
    samples_ += weight * samples;
    samples2_ += weight * samples * samples;
    seconds_ += weight * seconds;
    product_ += weight * samples * seconds;
  }
}

std::optional<Affine> TimeModel::affine() const noexcept { return fit_; }

void TimeModel::record(std::uint64_t samples, double seconds) noexcept {
  if (samples == 0 || !std::isfinite(seconds) || seconds <= 0) return;
  const auto b = static_cast<double>(samples);
  if (!fit_) {
    fit_ = Affine{0, seconds / b};
    return add(b, seconds);
  }
  const double expected = fit_->seconds(b);
  if (seconds < kLong) seconds = std::max(seconds, expected / kFasterByShort);
  const double limit = kOutlier * deviation_ * expected;
  const double off = seconds - expected;
  if (std::abs(off) <= limit) {
    side_ = 0;
    deviation_ += kNewestDeviation * (std::abs(off) / expected - deviation_);
    deviation_ = std::clamp(deviation_, kDeviationMin, kDeviationMax);
    return add(b, seconds);
  }
  const int side = off > 0 ? 1 : -1;
  deviation_ = std::min(kDeviationMax, deviation_ * (1 + kNewestDeviation));
  if (side != side_) {
    side_ = side;
    outlier_samples_ = b;
    outlier_seconds_ = seconds;
    return add(b, expected + side * limit);
  }
  // A throttled device is slower in all it does: the old records, scaled, still tell how its time divides.
  rescale((outlier_seconds_ / fit_->seconds(outlier_samples_) + seconds / expected) / 2);
  add(outlier_samples_, outlier_seconds_);
  add(b, seconds);
  outlier_samples_ = b;
  outlier_seconds_ = seconds;
}

void TimeModel::add(double samples, double seconds) noexcept {
  const double forget = std::min(kForget, records_ / (records_ + 2.0));
  ++records_;
  for (double* sum : {&weight_, &samples_, &samples2_, &seconds_, &product_}) *sum *= forget;
  // By the expected time, not the measured one: dividing by the latter would favour the fast records.
  const double expected = fit_->seconds(samples);
  const double weight = 1 / std::pow(expected * std::max(kQuiet, deviation_), 2);
  weight_ += weight;
  samples_ += weight * samples;
  samples2_ += weight * samples * samples;
  seconds_ += weight * seconds;
  product_ += weight * samples * seconds;
  solve();
  ratio_ += (1 - forget) * (fit_->fixed / fit_->per_sample - ratio_);
}

void TimeModel::rescale(double factor) noexcept {
  records_ = 1;
  for (double* sum : {&weight_, &samples_, &samples2_}) *sum *= kAfterChange / (factor * factor);
  for (double* sum : {&seconds_, &product_}) *sum *= kAfterChange / factor;
  fit_->fixed *= factor;
  fit_->per_sample *= factor;
}

// Minimises the sum of ((t - fixed - per_sample b) / (expected off))² and kRatioWeight times
// ((fixed - ratio per_sample) / (mean kQuiet))².
void TimeModel::solve() noexcept {
  const double mean_samples = samples_ / weight_;
  const double mean_seconds = seconds_ / weight_;
  const double k = kRatioWeight / std::pow(mean_seconds * kQuiet, 2);
  const double a11 = weight_ + k;
  const double a12 = samples_ - k * ratio_;
  const double a22 = samples2_ + k * ratio_ * ratio_;
  const double determinant = a11 * a22 - a12 * a12;
  Affine fit{0, product_ / samples2_};
  if (determinant > 0) {
    fit.fixed = (a22 * seconds_ - a12 * product_) / determinant;
    fit.per_sample = (a11 * product_ - a12 * seconds_) / determinant;
  }
  if (!(fit.fixed > 0)) fit = {0, product_ / samples2_};
  // Noise between shares that hardly differ must not make a device look as if samples were free.
  const double least = kPerSampleShare * mean_seconds / mean_samples;
  if (!(fit.per_sample > least)) fit = {std::max(0.0, mean_seconds - least * mean_samples), least};
  fit_ = fit;
}

}  // namespace motley::plan
