#pragma once
// Shares of a pass by measured speed. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"

namespace motley::plan {

/// Speed of one worker as seen by the coordinator: samples over the time from the opening of a pass to the arrival of
/// the last byte of its contribution, so that computing and wire are both in it. Exponential moving average of the time
/// per sample. A record slower than three times the mean counts as three times the mean, unless the one before was that
/// slow as well: a hiccup moves little, a device that did become slow is believed at its second pass.
class Speed {
 public:
  void record(std::uint64_t samples, Duration elapsed) noexcept;
  /// A pass without a share: believed half a per cent faster, so that in the end it is tried again, with the least
  /// share.
  void idle() noexcept;
  [[nodiscard]] std::optional<double> samples_per_second() const noexcept;
  /// Time it should take for `samples`; empty before the first record.
  [[nodiscard]] std::optional<Duration> predict(std::uint64_t samples) const noexcept;

 private:
  double seconds_per_sample_ = 0;  // 0: nothing recorded yet
  bool clipped_ = false;           // the last record was cut
};

struct Shares {
  std::vector<std::uint64_t>
      counts;          // per worker; sums to the total; every count but the last non-zero one is a multiple of grain
  std::string reason;  // one sentence
};

/// Splits `total` positions. `speeds[i]` empty: not measured yet, takes the mean of the measured ones (or an equal
/// share). `previous`, when it fits, is kept unless the predicted finish time improves by more than 3 % (hysteresis).
/// REQUIRES speeds not empty, grain > 0.
Shares split(std::uint64_t total, std::uint64_t grain, std::span<const std::optional<double>> speeds,
             std::span<const std::uint64_t> previous = {});

}  // namespace motley::plan
