#pragma once
// How often a run writes checkpoints. What was done since the newest one is done again after a crash.

#include <algorithm>

namespace motley::runtime {

/// So many seconds after the last one was begun, which took `took`. `every`: seconds that were asked for; 0: they may
/// take a hundredth of the time.
[[nodiscard]] inline bool checkpoint_due(double since, double took, double every) {
  constexpr double kPartOfTime = 0.01;
  constexpr double kEveryMin = 5;  // what is lost then is little, and each one wakes the disk
  return since >= (every > 0 ? every : std::max(kEveryMin, took / kPartOfTime));
}

}  // namespace motley::runtime
