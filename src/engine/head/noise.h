#pragma once
// What the norms of a step's contributions say of the noise of its gradients. One thread at a time.

#include <cstdint>
#include <optional>

#include "engine/head/coordinator.h"
#include "engine/head/performance.h"
#include "engine/head/step_norms.h"
#include "plan/noise_scale.h"

namespace motley::engine {

class GradientNoise {
 public:
  /// REQUIRES performance outlives this.
  explicit GradientNoise(const MeasuredPerformance& performance) : performance_(performance) {}

  /// Of the open step.
  [[nodiscard]] StepNorms& norms() noexcept { return norms_; }
  /// The open step is closed, and says nothing.
  void drop_step() { norms_.drop(); }
  /// The open step, of so many samples, is closed.
  void close_step(std::uint64_t samples) {
    if (const auto estimate = norms_.close(samples)) scale_.record(*estimate);
  }

  [[nodiscard]] Noise known() const {
    Noise known{.records = scale_.records(), .scale = scale_.samples(), .useful_batch = {}};
    const std::optional<double> lost = performance_.lost_samples();
    if (known.scale && lost) known.useful_batch = plan::useful_batch(*lost, *known.scale);
    return known;
  }

 private:
  const MeasuredPerformance& performance_;
  StepNorms norms_;
  plan::NoiseScale scale_;
};

}  // namespace motley::engine
