#pragma once
// What is made of the distance between what was measured and what was expected. Pure.

namespace motley::plan {

/// Relative to what was expected, as all numbers here.
struct Innovation {
  double off = 0;       // what of the distance counts
  double noise = 0;     // variance of what was measured
  double grown = 0;     // what the variance of the expectation grows by before that
  bool change = false;  // all that was expected changes by `off`, and is off by `noise` since
};

/// The gate of a Kalman filter (reference: chi-square gating of innovations; CUSUM for what is small and lasts), and
/// its noise, which is learned. A distance beyond three deviations is cut: a hiccup. The second in a row on the same
/// side is a change, of what both agree on. So is a fading mean of cut distances beyond three deviations of its own: a
/// small change.
class Innovations {
 public:
  /// Deviations: of the noise, at first and at the least and most.
  struct Noise {
    double first = 0, least = 0, most = 0;
  };
  explicit Innovations(Noise noise) noexcept;

  /// `variance`: of what was expected.
  Innovation judge(double off, double variance) noexcept;
  [[nodiscard]] double noise() const noexcept { return noise_; }  // a variance

 private:
  Innovation changed(double off) noexcept;

  double noise_, least_, most_;
  double before_ = 0;  // of the measurement before, if that was cut: from what is expected since
  double drift_ = 0;   // fading mean, in deviations
};

}  // namespace motley::plan
