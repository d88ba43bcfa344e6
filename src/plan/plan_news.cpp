#include "plan/plan_news.h"

#include <utility>

namespace motley::plan {
namespace {

// Of a worker by itself, before its speed is told: so many steps, or fewer where they are long.
constexpr std::uint32_t kStepsTold = 30, kLongStepsTold = 3;
constexpr double kSecondsTold = 5;

}  // namespace

void PlanNews::shared(std::span<const std::uint64_t> workers) {
  sharing_.assign(workers.begin(), workers.end());
  alone_ = {};
}

void PlanNews::alone(double seconds) noexcept {
  ++alone_.steps;
  alone_.seconds += seconds;
  const bool known = alone_.steps >= kStepsTold || (alone_.steps >= kLongStepsTold && alone_.seconds >= kSecondsTold);
  if (known && !std::exchange(alone_.told, true)) outdated();
}

void PlanNews::told(Settling::Stage stage) {
  told_ = sharing_;
  told_stage_ = stage;
}

}  // namespace motley::plan
