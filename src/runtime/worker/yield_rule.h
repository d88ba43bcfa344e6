#pragma once
// When a worker stops for the person whose machine it is, and when it goes on. Pure.

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "machine/machine_use.h"

namespace motley::runtime {

struct YieldOptions {
  bool idle_only = false;               // pause while somebody uses the machine
  std::chrono::seconds idle_after{60};  // that long without a sign of use
  bool battery_pauses = false;
  [[nodiscard]] bool wanted() const noexcept { return idle_only || battery_pauses; }
};

enum class PauseReason : std::uint8_t { none, in_use, on_battery };

/// In use at once, idle only after a while: from one reading that shows use, until `idle_after` has gone by without
/// one. The load of other programs is smoothed over some readings, so that opening a file is not a pause.
class YieldRule {
 public:
  static constexpr double kLoadOfUse = 0.2;   // of all processors
  static constexpr double kNewestLoad = 0.3;  // weight of a reading in the smoothed load

  explicit YieldRule(YieldOptions options) : options_(options) {}
  /// Regularly, about once a second.
  PauseReason decide(const machine::UseReading& reading, Time now);

 private:
  YieldOptions options_;
  std::optional<double> load_;
  std::optional<Time> loaded_;  // last
};

}  // namespace motley::runtime
