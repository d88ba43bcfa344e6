#include "runtime/yield_rule.h"

#include <algorithm>

namespace motley::runtime {

PauseReason YieldRule::decide(const UseReading& reading, Time now) {
  if (reading.others_load) load_ = load_ ? *load_ + kNewestLoad * (*reading.others_load - *load_) : reading.others_load;
  if (load_ && *load_ >= kLoadOfUse) used_ = now;
  if (reading.input_idle_s) {
    const auto idle = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*reading.input_idle_s));
    used_ = std::max(used_.value_or(now - idle), now - idle);
  }
  if (options_.idle_only && used_ && now - *used_ < options_.idle_after) return PauseReason::in_use;
  if (options_.battery_pauses && reading.on_battery.value_or(false)) return PauseReason::on_battery;
  return PauseReason::none;
}

}  // namespace motley::runtime
