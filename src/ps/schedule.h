#pragma once
// Learning-rate factors and the checks of what a user asks for. Pure.

#include <cstdint>
#include <utility>
#include <vector>

#include "motley/layout.h"
#include "motley/result.h"
#include "ps/spec.h"

namespace motley::ps {

/// By what the base rate is multiplied at a step (counted from 0): closed forms of torch's StepLR, CosineAnnealingLR
/// and, for the warm-up, LinearLR.
double learning_rate_factor(const ScheduleSpec& schedule, std::uint64_t step);

/// A parameter group's numbers at a step of the schedule. REQUIRES check(schedule) and, with a table, index < its
/// groups.
GroupSpec group_at(const ScheduleSpec& schedule, std::size_t index, GroupSpec group, std::uint64_t step);

/// A group's numbers at each step: those of the schedule, and what was said since the run began.
class Rates {
 public:
  /// REQUIRES check(schedule).
  explicit Rates(ScheduleSpec schedule = {}) : schedule_(std::move(schedule)) {}

  [[nodiscard]] const ScheduleSpec& schedule() const noexcept { return schedule_; }
  /// From its step on; replaces what was said of that step and later ones. Of steps before `now` nobody asks any more.
  void follow(FollowedRates rates, std::uint64_t now);
  [[nodiscard]] GroupSpec at(std::uint64_t step, std::size_t index, const GroupSpec& group) const;

 private:
  ScheduleSpec schedule_;
  std::vector<FollowedRates> followed_;  // in order of steps
};

/// ErrorCode::input with the first value outside the range that torch accepts.
Status check(const OptimizerSpec& optimizer);
Status check(const ScheduleSpec& schedule);
/// ErrorCode::input where a tensor or a table is of groups that the optimizer does not have.
Status check_groups(const Layout& layout, const OptimizerSpec& optimizer, const ScheduleSpec& schedule);

}  // namespace motley::ps
