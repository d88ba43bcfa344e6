#pragma once
// Time and processor time of a piece of work, and the medians of several. Any thread; a Meter belongs to one.

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "machine/processor_time.h"

namespace motley::bench {

using Clock = std::chrono::steady_clock;

struct Speed {
  double gb_per_s = 0;
  double processor_s_per_gb = 0;  // of the whole process; on a busy machine the steadier of the two
  double receiver_s_per_gb = 0;   // of that, the receiving end's; 0 where both ends send
};

/// From its making on.
class Meter {
 public:
  [[nodiscard]] double wall_s() const;
  [[nodiscard]] double processor_s() const;  // of the whole process
  [[nodiscard]] Speed speed(std::uint64_t bytes) const;

 private:
  Clock::time_point start_ = Clock::now();
  double processor_start_s_ = machine::processor_time_s();
};

/// Processor time of those threads that call note(), from the beginning of each to its last call. Any thread.
class ThreadMeter {
 public:
  void note();
  [[nodiscard]] double processor_s() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, double> seconds_;
};

/// 0 of nothing.
double median(std::vector<double> values);
double largest(const std::vector<double>& values);

}  // namespace motley::bench
