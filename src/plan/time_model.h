#pragma once
// How long a worker takes for its part of a pass, learned while it runs. Pure.

#include <cstdint>
#include <optional>

namespace motley::plan {

/// Seconds for b samples of one pass: fixed + per_sample · b. `fixed` is what a pass costs however few samples there
/// are: kernels that start, the gradient on the wire, the wait for new weights.
struct Affine {
  double fixed = 0, per_sample = 0;
  [[nodiscard]] constexpr double seconds(double samples) const noexcept { return fixed + per_sample * samples; }
  bool operator==(const Affine&) const = default;
};

/// Least squares over (samples, seconds) with relative errors, where each record counts 0.97 times as much as the next;
/// the one after the first n makes these count n/(n + 2) times, since what is cold says little (reference:
/// recursive least squares with forgetting, in information form, so that it does not wind up while the shares stand
/// still). While they do, the records say nothing about how the time divides into its two parts: what was found of
/// fixed / per_sample is kept by a weak prior, and both parts move together. Records count the less the further they
/// were off at the time, and the prior follows slowly: a device that warms up while its share grows must not look as if
/// samples were free.
///
/// A record more than three deviations off counts as three: a hiccup moves little. The second in a row on the same side
/// is believed: the device did become slower or faster, in all it does. A record of less than 0.1 s makes it no more
/// than 1.3 times as fast at once.
class TimeModel {
 public:
  TimeModel() = default;
  /// Starts from what an earlier run knew, believed as much as a few records.
  explicit TimeModel(const Affine& known) noexcept;

  /// Zero samples or a time that is not positive and finite say nothing and are ignored.
  void record(std::uint64_t samples, double seconds) noexcept;
  /// Empty before the first record. per_sample > 0, fixed >= 0.
  [[nodiscard]] std::optional<Affine> affine() const noexcept;
  /// Mean distance of a record from the model, as a part of it: 0.02 is 2 %.
  [[nodiscard]] double deviation() const noexcept { return deviation_; }

 private:
  void add(double samples, double seconds) noexcept;
  void rescale(double factor) noexcept;
  void solve() noexcept;

  // Sums over the records, each divided by its expected time and by what records were off by then, both squared.
  double weight_ = 0, samples_ = 0, samples2_ = 0, seconds_ = 0, product_ = 0;
  std::uint32_t records_ = 0;  // since the start, or since the speed changed
  double ratio_ = 0;           // of fixed / per_sample, as the prior has it
  double deviation_ = 0.05;
  int side_ = 0;  // of the last record, if it was cut: +1 slower, -1 faster
  double outlier_samples_ = 0, outlier_seconds_ = 0;
  std::optional<Affine> fit_;
};

}  // namespace motley::plan
