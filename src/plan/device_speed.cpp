#include "plan/device_speed.h"

#include <cmath>

namespace motley::plan {
namespace {

constexpr std::uint32_t kCalibrations = 4;
constexpr std::uint64_t kFirstCalibration = 16;  // this part of the batch
// Longer than the periods of quotas, which are a tenth of a second, and shorter than anybody minds to wait.
constexpr double kLongCalibration = 0.4;
constexpr std::uint32_t kWarm = 1;  // calibrations of a device that was here before
// A program that took the device's time and has ended gives it back at least so much; less is noise of short trials.
constexpr double kFasterAgain = 1.3;
constexpr double kStillTrue = 0.25;  // an earlier run's model that is further off is dropped
constexpr double kTrialSeconds = 0.2;

}  // namespace

void DeviceSpeed::known_before(const Affine& speed) noexcept {
  if (time_.affine()) return;
  time_ = TimeModel(speed);
  known_before_ = true;
}

std::uint64_t DeviceSpeed::calibration(const Sizes& sizes) const noexcept {
  const std::uint64_t first = sizes.grains(sizes.batch / kFirstCalibration);
  const auto long_one = [&](double per_sample) {
    return std::max(2 * first, sizes.grains(static_cast<std::uint64_t>(kLongCalibration / per_sample)));
  };
  switch (calibrations_) {
    case 0:
      return first;
    case 1:
      return known_before_ ? long_one(time_.affine()->per_sample) : first;
    case 2:
      return known_before_ ? 0 : long_one(seconds_ / static_cast<double>(samples_));
    case 3:
      return sizes.grains(samples_ / 4);
    default:
      return 0;
  }
}

std::uint64_t DeviceSpeed::trial(const Sizes& sizes) const noexcept {
  const std::optional<Affine> time = time_.affine();
  if (!time) return sizes.grain;
  const double samples = std::max(0.0, kTrialSeconds - time->fixed) / time->per_sample;
  return sizes.grains(static_cast<std::uint64_t>(std::min(samples, static_cast<double>(sizes.batch))));
}

DeviceSpeed::Tried DeviceSpeed::calibrated(std::uint64_t samples, double seconds) noexcept {
  const std::optional<Affine> time = time_.affine();
  const double expected = time ? time->seconds(static_cast<double>(samples)) : 0;
  const bool wrong = known_before_ && calibrations_ == 1 && std::abs(seconds - expected) > kStillTrue * expected;
  const bool faster = calibrations_ >= kCalibrations && time && kFasterAgain * seconds < expected;
  if (wrong || faster) {
    time_ = {};
    known_before_ = false;
  }
  if (faster) calibrations_ = kWarm;
  if (calibrations_++ > 0) time_.record(samples, seconds);
  samples_ = samples;
  seconds_ = std::max(1e-6, seconds);
  return faster ? Tried::faster : calibrations_ > kCalibrations ? Tried::as_ever : Tried::measured;
}

}  // namespace motley::plan
