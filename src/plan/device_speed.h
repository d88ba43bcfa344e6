#pragma once
// How fast a device computes: as it was measured before it takes part, in its passes, and beside the run while it has
// no share. Pure.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "plan/time_model.h"

namespace motley::plan {

/// What samples come in: whole grains of a batch.
struct Sizes {
  std::uint64_t batch = 0, grain = 1;
  /// At least one.
  [[nodiscard]] constexpr std::uint64_t grains(std::uint64_t samples) const noexcept {
    return std::max<std::uint64_t>(1, samples / grain) * grain;
  }
};

/// A time model and the calibrations that come before it: one that warms up (its time says nothing), one of the same
/// size that tells how many samples make a long one, the long one, and one of a quarter of it. Two sizes tell fixed
/// costs from costs per sample, and long ones see what a device can keep up: a processor with a quota, or one that
/// turbos, is fast for some milliseconds. What an earlier run learned is only checked, by a long one.
class DeviceSpeed {
 public:
  enum class Tried : std::uint8_t {
    measured,  // it was not known well before
    as_ever,
    faster,  // much faster than it was: it is measured anew
  };

  /// What an earlier run learned; nothing if this one learned of it before.
  void known_before(const Affine& speed) noexcept;
  /// Samples of the next calibration; 0: enough is known.
  [[nodiscard]] std::uint64_t calibration(const Sizes& sizes) const noexcept;
  /// Samples by which it is tried again while it has no share.
  [[nodiscard]] std::uint64_t trial(const Sizes& sizes) const noexcept;
  /// A calibration or a trial took so long. REQUIRES samples > 0.
  Tried calibrated(std::uint64_t samples, double seconds) noexcept;
  /// Its part of a pass.
  void record(std::uint64_t samples, double seconds) noexcept { time_.record(samples, seconds); }

  /// Of computing alone; empty until something was measured or known before.
  [[nodiscard]] std::optional<Affine> time() const noexcept { return time_.affine(); }

 private:
  TimeModel time_;
  std::uint32_t calibrations_ = 0;
  bool known_before_ = false;  // time_ starts from an earlier run
  std::uint64_t samples_ = 0;  // of the newest calibration
  double seconds_ = 0;         // likewise
};

}  // namespace motley::plan
