#include "plan/micro_batch.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::plan {
namespace {

constexpr double kCautionDoubling = 1.25;  // times what the model says the samples take
constexpr double kCautionJump = 2;         // over sizes that nobody has tried
constexpr double kCliff = 1.25;            // times the seconds a sample takes at a smaller size
constexpr int kSlowRuns = 2;               // one may be a hiccup

}  // namespace

void PeakModel::record(std::uint32_t samples, std::uint64_t peak) {
  MOTLEY_ASSERT(samples > 0);
  const Seen seen{static_cast<double>(samples), static_cast<double>(peak)};
  const auto at = std::lower_bound(seen_.begin(), seen_.end(), seen,
                                   [](const Seen& a, const Seen& b) { return a.samples < b.samples; });
  if (at == seen_.end() || at->samples > seen.samples) {
    seen_.insert(at, seen);
  } else if (seen.peak > at->peak) {
    at->peak = seen.peak;
  } else {
    return;
  }
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Seen& one : seen_) {
    n += 1;
    x += one.samples;
    y += one.peak;
    xx += one.samples * one.samples;
    xy += one.samples * one.peak;
  }
  const double determinant = n * xx - x * x;
  fixed_ = floor_;
  // One size alone: all above the floor may grow with the samples.
  per_sample_ = std::max(0.0, (xy - floor_ * x) / xx);
  if (determinant <= 0) return;
  const double per_sample = (n * xy - x * y) / determinant;
  const double fixed = (y - per_sample * x) / n;
  if (fixed < floor_ || per_sample <= 0) return;
  fixed_ = fixed;
  per_sample_ = per_sample;
}

double PeakModel::bytes(double samples) const noexcept {
  double bytes = fixed_ + growth(samples);
  for (const Seen& one : seen_) {
    if (one.samples <= samples) bytes = std::max(bytes, one.peak);
  }
  return bytes;
}

double PeakModel::growth(double samples) const noexcept { return per_sample_ * samples; }

MicroBatch::MicroBatch(std::uint32_t most, std::uint64_t fixed_bytes, std::uint64_t budget) noexcept
    : most_(std::max(1U, most)), budget_(budget), model_(fixed_bytes) {}

bool MicroBatch::fits(double samples, double caution, std::uint64_t budget) const noexcept {
  return model_.bytes(samples) + (caution - 1) * model_.growth(samples) <= static_cast<double>(budget);
}

void MicroBatch::ran(const Run& run) {
  if (run.samples == 0) return;
  model_.record(run.samples, run.peak);
  // Others on this machine want more memory than they did: step back before it is short.
  while (size_ > 1 && !fits(size_, 1, run.budget)) {
    size_ /= 2;
    most_ = size_;
  }
  const Verdict verdict = judge_speed(run);
  if (verdict == Verdict::worse) most_ = size_;
  growing_ = size_ < most_;
  if (!growing_ || run.samples < size_ || verdict == Verdict::doubtful) return;
  const std::uint64_t budget = std::min(budget_, run.budget);
  if (fits(most_, kCautionJump, budget)) {
    size_ = most_;
  } else if (const std::uint32_t twice = std::min(most_, 2 * size_); fits(twice, kCautionDoubling, budget)) {
    size_ = twice;
  } else {
    most_ = size_;
  }
  growing_ = size_ < most_;
}

// Worse: a smaller size is clearly faster and is taken again (memory is swapped, or a cache overflows).
MicroBatch::Verdict MicroBatch::judge_speed(const Run& run) {
  if (run.seconds_per_sample <= 0 || run.samples != size_) return Verdict::good;
  auto at = std::find_if(speeds_.begin(), speeds_.end(), [&](const Speed& s) { return s.samples == run.samples; });
  if (at == speeds_.end()) at = speeds_.insert(speeds_.end(), {run.samples, run.seconds_per_sample});
  at->seconds_per_sample = std::min(at->seconds_per_sample, run.seconds_per_sample);
  double best = run.seconds_per_sample;
  for (const Speed& other : speeds_) {
    if (other.samples < run.samples) best = std::min(best, other.seconds_per_sample);
  }
  if (run.seconds_per_sample <= kCliff * best) {
    at->slow = 0;
    return Verdict::good;
  }
  if (++at->slow < kSlowRuns) return Verdict::doubtful;
  size_ = 1;
  for (const Speed& other : speeds_) {
    const bool before_the_cliff = other.samples < run.samples && other.seconds_per_sample <= kCliff * best;
    if (before_the_cliff) size_ = std::max(size_, other.samples);
  }
  return Verdict::worse;
}

bool MicroBatch::out_of_memory() noexcept {
  if (size_ == 1) return false;
  size_ /= 2;
  most_ = size_;
  growing_ = false;
  return true;
}

}  // namespace motley::plan
