#include "plan/settling.h"

namespace motley::plan {
namespace {

constexpr std::uint32_t kPassesSettled = 8;  // enough for connections, caches and shares to find their places
// Where passes are long the second is known to be warm, and nobody waits for eight of them.
constexpr std::uint32_t kLongPassesSettled = 2;
constexpr double kSecondsSettled = 5;

}  // namespace

void Settling::begin() noexcept {
  passes_ = 0;
  seconds_ = 0;
}

void Settling::closed(double seconds) noexcept {
  seconds_ += seconds;
  ++passes_;
}

Settling::Stage Settling::stage() const noexcept {
  const bool long_enough = seconds_ >= kSecondsSettled;
  if (passes_ >= kPassesSettled) return long_enough ? Stage::settled_for_seconds : Stage::settled;
  return passes_ >= kLongPassesSettled && long_enough ? Stage::few_long_passes : Stage::unsettled;
}

}  // namespace motley::plan
