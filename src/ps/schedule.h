#pragma once
// Learning-rate factors and the checks of what a user asks for. Pure.

#include <cstdint>
#include <span>

#include "motley/result.h"
#include "ps/spec.h"

namespace motley::ps {

/// By what the base rate is multiplied at a step (counted from 0): closed forms of torch's StepLR, CosineAnnealingLR
/// and, for the warm-up, LinearLR.
double learning_rate_factor(const ScheduleSpec& schedule, std::uint64_t step);

/// A parameter group's numbers at a step of the schedule. REQUIRES check(schedule) and, with a table, index < its
/// groups.
GroupSpec group_at(const ScheduleSpec& schedule, std::size_t index, GroupSpec group, std::uint64_t step);

/// Where in the schedule a step is, and by what its base rate is multiplied beside that.
struct SchedulePoint {
  std::uint64_t step = 0;
  double rate = 1;
};
SchedulePoint schedule_point(std::span<const RateChange> changes, std::uint64_t step) noexcept;

/// ErrorCode::input with the first value outside the range that torch accepts.
Status check(const OptimizerSpec& optimizer);
Status check(const ScheduleSpec& schedule);

}  // namespace motley::ps
