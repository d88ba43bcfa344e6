#pragma once
// Work and rest of a device that may compute only a part of the time: whatever it works, it owes rest in proportion.
// Time without work pays the debt; more rest than is owed is not saved up. Pure.

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace motley::runtime {

class DutyCycle {
 public:
  /// REQUIRES 0 < share <= 1.
  explicit DutyCycle(double share) : rest_per_work_(1 / share - 1) {}

  void start(Time now) {
    owed_ = std::max(0.0, owed_ - seconds(now - stopped_));
    started_ = now;
  }
  void stop(Time now) {
    const double work = seconds(now - started_);
    owed_ += work * rest_per_work_;
    charged_ += work * (1 + rest_per_work_);
    stopped_ = now;
  }
  /// After stop(): what is left to rest before the next start().
  [[nodiscard]] Duration owed() const {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(owed_));
  }
  /// Seconds of work since the last call, each with the rest that belongs to it.
  double take_charge() { return std::exchange(charged_, 0.0); }

 private:
  double rest_per_work_;
  Time started_{}, stopped_{};
  double owed_ = 0, charged_ = 0;
};

}  // namespace motley::runtime
