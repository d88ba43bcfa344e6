#pragma once
// Whether the run stops between steps, for somebody to look at it and to say how it goes on.

#include <cstdint>

#include "base/batch_plan.h"

namespace motley::modes {

/// An eval point is where an evaluation would be due, whether or not there is a test set: the end of an epoch, or every
/// `evaluate_every` steps, and the end of the run.
enum class Pauses : std::uint8_t {
  never,
  eval_points,  // at each eval point, after its evaluation where there is one
  steps,        // after each step; at eval points once more, as above
};

/// Where eval points lie, apart from the end of the run.
struct EvalPoints {
  std::uint64_t every = 0;  // steps; 0: at the end of each epoch

  [[nodiscard]] bool at(const BatchPlan& batches, std::uint64_t version) const noexcept {
    return every > 0 ? version % every == 0 : batches.range(version).order_first == 0;
  }
  [[nodiscard]] std::uint64_t after(const BatchPlan& batches, std::uint64_t version) const noexcept {
    return every > 0 ? version - version % every + every : batches.first_step(batches.range(version).epoch + 1);
  }
  /// The newest one before `version`, or the start. REQUIRES version > 0.
  [[nodiscard]] std::uint64_t before(const BatchPlan& batches, std::uint64_t version) const noexcept {
    std::uint64_t version_at = version - 1;
    while (version_at > 0 && !at(batches, version_at)) --version_at;
    return version_at;
  }
};

}  // namespace motley::modes
