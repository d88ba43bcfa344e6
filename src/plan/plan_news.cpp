#include "plan/plan_news.h"

#include <utility>

namespace motley::plan {
namespace {

// Of a worker by itself, before its speed is told: so many steps, or fewer where they are long. Of short ones again,
// after these seconds.
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
  if (alone_.stage() > std::exchange(alone_.told, alone_.stage())) outdated();
}

Settling::Stage PlanNews::Alone::stage() const noexcept {
  if (steps >= kLongStepsTold && seconds >= kSecondsTold) return Settling::Stage::settled_for_seconds;
  return steps >= kStepsTold ? Settling::Stage::settled : Settling::Stage::unsettled;
}

void PlanNews::told(Settling::Stage stage) {
  told_ = sharing_;
  told_stage_ = stage;
}

}  // namespace motley::plan
