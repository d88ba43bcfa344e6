#pragma once
// What it costs that a step is clipped by its own norm: no weight is updated before the last gradient is in. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>

namespace motley::plan {

class ClippingCost {
 public:
  /// `chunks`: of the model. Clipped by the norm of the step before, each is updated when it is complete.
  explicit ClippingCost(std::size_t chunks) noexcept : chunks_(static_cast<double>(chunks)) {}

  /// In the mean of some steps.
  struct Mean {
    double step_seconds = 0;
    double waited_seconds = 0;  // of these; for nothing but the update
    [[nodiscard]] double part() const noexcept { return waited_seconds / step_seconds; }
  };
  /// A step of several workers; `update_seconds` after the last contribution the next one could begin. Returns, once,
  /// what of that could have been done before, where it is worth being told.
  std::optional<Mean> step(double step_seconds, double update_seconds) noexcept;

 private:
  double chunks_;
  bool told_ = false;
  std::uint32_t cold_ = 0, steps_ = 0;
  double step_seconds_ = 0, update_seconds_ = 0;  // of these, in all
};

}  // namespace motley::plan
