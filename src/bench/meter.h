#pragma once
// Time and processor time of a piece of work. One thread.

#include <chrono>

#include "machine/processor_time.h"

namespace motley::bench {

using Clock = std::chrono::steady_clock;

/// From its making on.
class Meter {
 public:
  [[nodiscard]] double wall_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// Of the whole process.
  [[nodiscard]] double processor_s() const { return machine::processor_time_s() - processor_start_s_; }

 private:
  Clock::time_point start_ = Clock::now();
  double processor_start_s_ = machine::processor_time_s();
};

}  // namespace motley::bench
