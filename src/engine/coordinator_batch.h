#pragma once
// The batch, where it follows the noise of the gradients: what the steps so far say of that, and when it changes. One
// thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/coordinator.h"
#include "engine/coordinator_pace.h"
#include "engine/step_norms.h"
#include "plan/noise_scale.h"

namespace motley::engine {

class BatchChoice {
 public:
  /// REQUIRES pace outlives this.
  BatchChoice(const CoordinatorOptions& options, const MeasuredPace& pace);

  /// Of the open step.
  [[nodiscard]] StepNorms& norms() noexcept { return norms_; }
  /// The open step is closed, and says nothing.
  void drop_step() { norms_.drop(); }
  /// The open step, of so many samples, is closed.
  void close_step(std::uint64_t samples);
  /// Of a step that a worker made by itself.
  void record(const plan::NoiseEstimate& estimate) { noise_.record(estimate); }

  [[nodiscard]] Noise noise() const;
  /// From the step after this one on. `last`: there is none. REQUIRES its noise is the newest one.
  [[nodiscard]] std::optional<BatchChange> after(const StepClosed& step, bool last) const;
  /// It was decided. Returns what all changes so far mean to the learning rate.
  std::vector<ps::RateChange> change(const BatchChange& change);
  /// It changed, and the steps are at it, and nobody was told what they will take.
  [[nodiscard]] bool news(std::uint64_t version) const noexcept {
    return news_ && version >= changes_.back().first_step;
  }
  void told() noexcept { news_ = false; }

 private:
  const MeasuredPace& pace_;
  bool adapts_, by_samples_;
  std::uint64_t first_batch_, train_samples_, grain_;
  bool adaptive_optimizer_;
  std::vector<BatchChange> changes_;
  StepNorms norms_;
  plan::NoiseScale noise_;
  bool news_ = false;
};

}  // namespace motley::engine
