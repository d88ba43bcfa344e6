#include "runtime/worker/yield_rule.h"

namespace motley::runtime {

PauseReason YieldRule::decide(const machine::UseReading& reading, Time now) {
  if (reading.others_load) load_ = load_ ? *load_ + kNewestLoad * (*reading.others_load - *load_) : reading.others_load;
  if (load_ && *load_ >= kLoadOfUse) loaded_ = now;
  const bool input = reading.input_idle_s && *reading.input_idle_s < seconds(options_.idle_after);
  const bool load = loaded_ && now - *loaded_ < options_.idle_after;
  if (options_.idle_only && (input || load)) return PauseReason::in_use;
  if (options_.battery_pauses && reading.on_battery.value_or(false)) return PauseReason::on_battery;
  return PauseReason::none;
}

}  // namespace motley::runtime
