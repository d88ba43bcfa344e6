#include <algorithm>
#include <cstdint>
#include <optional>

#include "plan/split.h"

namespace motley::plan {
namespace {
constexpr double kNewest = 0.3;
constexpr double kSlowestBelieved = 3;  // times the mean
constexpr double kIdle = 0.995;
}  // namespace

void Speed::record(std::uint64_t samples, Duration elapsed) noexcept {
  // Nothing computed, or a clock that stood still, says nothing about speed.
  if (samples == 0 || elapsed <= Duration::zero()) return;
  double pace = seconds(elapsed) / static_cast<double>(samples);
  if (seconds_per_sample_ == 0) {
    seconds_per_sample_ = pace;
    return;
  }
  const double limit = kSlowestBelieved * seconds_per_sample_;
  const bool outlier = pace > limit;
  if (outlier && !clipped_) pace = limit;
  clipped_ = outlier;
  seconds_per_sample_ += kNewest * (pace - seconds_per_sample_);
}

void Speed::idle() noexcept { seconds_per_sample_ *= kIdle; }

std::optional<double> Speed::samples_per_second() const noexcept {
  if (seconds_per_sample_ == 0) return std::nullopt;
  return 1 / seconds_per_sample_;
}

std::optional<Duration> Speed::predict(std::uint64_t samples) const noexcept {
  if (seconds_per_sample_ == 0) return std::nullopt;
  constexpr double kYear = 365.0 * 86400;  // keeps the conversion to integer nanoseconds defined
  const double expected = std::min(kYear, seconds_per_sample_ * static_cast<double>(samples));
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(expected));
}

}  // namespace motley::plan
