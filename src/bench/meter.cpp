#include "bench/meter.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>

namespace motley::bench {

double Meter::wall_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double Meter::processor_s() const { return processor_now_s() - processor_start_s_; }

Speed Meter::speed(std::uint64_t bytes) const {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  return {gigabytes / wall_s(), processor_s() / gigabytes, 0};
}

double Meter::processor_now_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void ThreadMeter::note() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  const std::lock_guard lock(mutex_);
  seconds_[std::this_thread::get_id()] = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
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
