#pragma once
// The norms of a step's contributions, collected chunk by chunk. One thread at a time.

#include <optional>
#include <span>
#include <vector>

#include "modes/work/interval_set.h"
#include "plan/noise_scale.h"

namespace motley::engine {

class StepNorms {
 public:
  struct Part {  // of a contribution
    modes::Interval range{};
    double weight = 0;
  };
  /// Where the squared norm of each part of a gradient chunk is to be added. Empty where it would say nothing: one part
  /// only, or others than the chunks before had, because a range was computed again in parts.
  std::span<double> of(std::span<const Part> parts);
  /// Of the chunk's mean gradient.
  void add_mean(double square) noexcept { mean_square_ += square; }
  /// What the step says; empty if nothing. Starts the next one.
  std::optional<plan::NoiseEstimate> close(std::uint64_t samples);
  /// How alike in direction the contributions are: the mean cosine between two of them, by their norms; 1: the same.
  /// Empty where it says nothing.
  [[nodiscard]] std::optional<double> cosine() const;
  /// Starts the next one.
  void drop();

 private:
  std::vector<modes::Interval> ranges_;    // of the first chunk
  std::vector<double> weights_, squares_;  // by range
  std::vector<plan::PartNorm> parts_;      // kept for its memory
  double mean_square_ = 0;
  bool useless_ = false;
};

}  // namespace motley::engine
