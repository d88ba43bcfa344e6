#pragma once
// How long a worker takes for its part of a pass, learned while it runs. Pure.

#include <cstdint>
#include <optional>

#include "plan/innovations.h"

namespace motley::plan {

/// Seconds for b samples of one pass: fixed + per_sample · b. `fixed` is what a pass costs however few samples there
/// are: kernels that start, the gradient on the wire, the wait for new weights.
struct Affine {
  double fixed = 0, per_sample = 0;
  [[nodiscard]] constexpr double seconds(double samples) const noexcept { return fixed + per_sample * samples; }
  bool operator==(const Affine&) const = default;
};

/// A Kalman filter over (fixed, per_sample), with noise relative to the time. From pass to pass both parts move
/// together, as those of a device that is throttled do; how the time divides into them hardly moves. So that ratio
/// stays while records of one size say nothing about it. What is known after the first n records has 2/n of its
/// variance more with the next one, since what is cold says little.
///
/// `Innovations` says what of a record counts: a hiccup moves little, and the second record in a row on the same side
/// is believed. A record of less than 0.1 s makes a device no more than 1.3 times as fast at once.
class TimeModel {
 public:
  TimeModel() = default;
  /// Starts from what an earlier run knew, believed as much as a few records.
  explicit TimeModel(const Affine& known) noexcept;

  /// Zero samples or a time that is not positive and finite say nothing and are ignored.
  void record(std::uint64_t samples, double seconds) noexcept;
  /// Empty before the first record. per_sample > 0, fixed >= 0.
  [[nodiscard]] std::optional<Affine> affine() const noexcept { return state_; }
  /// Of a record from the model, as a part of it: 0.02 is 2 %.
  [[nodiscard]] double deviation() const noexcept;

 private:
  void begin(double samples, double seconds) noexcept;
  /// So much more, relative to the time, in both parts together.
  void vary(double variance) noexcept;
  /// So much more, likewise, in how the time of so many samples divides.
  void vary_ratio(double variance, double samples) noexcept;
  /// Of the time for so many samples, relative.
  [[nodiscard]] double variance(double samples) const noexcept;
  void rescale(double factor) noexcept;
  void update(double samples, const Innovation& innovation) noexcept;
  void bound(double samples) noexcept;

  std::optional<Affine> state_;
  double fixed2_ = 0, both_ = 0, per_sample2_ = 0;  // covariance
  std::uint32_t records_ = 0;
  Innovations innovations_{{.first = 0.05, .least = 0.01, .most = 0.3}};
};

}  // namespace motley::plan
