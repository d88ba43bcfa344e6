#pragma once
// What plans leave out of a pass. Pure.

#include <cstdint>
#include <optional>

namespace motley::plan {

/// What train passes take beyond the time that is expected of their slowest worker: the update at their end, and what
/// no model knows.
class StepOverhead {
 public:
  /// Seconds of the pass that opens; 0: unknown, or no longer what it takes.
  void expect(double seconds) noexcept { expected_ = seconds; }
  /// It took so long, as one of so many with the same workers.
  void closed(double seconds, std::uint32_t passes) noexcept;
  [[nodiscard]] const std::optional<double>& seconds() const noexcept { return step_overhead_; }
  /// A plan of so many seconds, after so many passes, with what it will take beyond them.
  [[nodiscard]] double added_to(double seconds, std::uint32_t passes) const noexcept;

 private:
  double expected_ = 0;
  std::optional<double> step_overhead_;
};

}  // namespace motley::plan
