#pragma once
// Learning-rate factors and the checks of what a user asks for. Pure.

#include <cstdint>

#include "motley/result.h"
#include "ps/spec.h"

namespace motley::ps {

/// By what the base rate is multiplied at a step (counted from 0): closed forms of torch's StepLR, CosineAnnealingLR
/// and, for the warm-up, LinearLR.
double learning_rate_factor(const ScheduleSpec& schedule, std::uint64_t step);

/// ErrorCode::input with the first value outside the range that torch accepts.
Status check(const OptimizerSpec& optimizer);
Status check(const ScheduleSpec& schedule);

}  // namespace motley::ps
