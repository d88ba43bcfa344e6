#include "bench/meter.h"

#include <algorithm>

#include "machine/processor_time.h"

namespace motley::bench {

double Meter::wall_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double Meter::processor_s() const { return machine::processor_time_s() - processor_start_s_; }

Speed Meter::speed(std::uint64_t bytes) const {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  return {gigabytes / wall_s(), processor_s() / gigabytes, 0};
}

void ThreadMeter::note() {
  const double seconds = machine::thread_processor_time_s();
  const std::lock_guard lock(mutex_);
  seconds_[std::this_thread::get_id()] = seconds;
}

double ThreadMeter::processor_s() const {
  const std::lock_guard lock(mutex_);
  double sum = 0;
  for (const auto& [id, seconds] : seconds_) sum += seconds;
  return sum;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

}  // namespace motley::bench
