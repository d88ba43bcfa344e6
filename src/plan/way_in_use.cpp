#include "plan/way_in_use.h"

namespace motley::plan {

void WayInUse::closed(bool in_sums) noexcept {
  untried_ = in_sums || untried_ == 0 ? 0 : untried_ - 1;
  in_sums_ = in_sums;
}

double WayInUse::patience(double version_seconds) const noexcept {
  constexpr double kVersionMost = 2.5;
  return untried() ? 2 * std::clamp(version_seconds, kSlowVersion, kVersionMost) : 0;
}

void share_waiting(std::span<SumPart> parts) noexcept {
  double computing = 0, took = 0;
  for (SumPart& part : parts) {
    part.computed = std::min(part.computed, part.seconds);  // nobody computes for longer than he has the lease
    computing = std::max(computing, part.computed);
    took = std::max(took, part.seconds);
  }
  for (SumPart& part : parts) part.seconds = part.computed + took - computing;
}

}  // namespace motley::plan
