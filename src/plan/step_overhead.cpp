#include "plan/step_overhead.h"

#include <algorithm>

namespace motley::plan {
namespace {

constexpr double kNewestOverhead = 0.2;         // of the mean
constexpr std::uint32_t kPassesOfOverhead = 4;  // the first took longer because they were the first
// Of a plan's seconds: passes that others helped to end may have been much shorter than planned, which says little
// about a plan of others.
constexpr double kOverheadLeast = 0.25;

}  // namespace

void StepOverhead::closed(double seconds, std::uint32_t passes) noexcept {
  if (expected_ <= 0) return;
  const double step_overhead = std::clamp(seconds - expected_, -expected_, expected_);
  step_overhead_ = step_overhead_ && passes > 2 ? *step_overhead_ + kNewestOverhead * (step_overhead - *step_overhead_)
                                                : step_overhead;
}

double StepOverhead::added_to(double seconds, std::uint32_t passes) const noexcept {
  const double step_overhead =
      step_overhead_.value_or(0) * std::min(1.0, static_cast<double>(passes) / kPassesOfOverhead);
  return seconds + std::max(step_overhead, -kOverheadLeast * seconds);
}

}  // namespace motley::plan
