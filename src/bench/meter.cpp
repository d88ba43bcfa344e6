#include "bench/meter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#ifdef __APPLE__
#include <mach/mach.h>
#endif

namespace motley::bench {

double Meter::wall_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double Meter::processor_s() const { return processor_now_s() - processor_start_s_; }

Speed Meter::speed(std::uint64_t bytes) const {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  return {gigabytes / wall_s(), processor_s() / gigabytes};
}

double Meter::processor_now_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
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

std::optional<std::uint64_t> resident_bytes() {
#ifdef __APPLE__
  mach_task_basic_info info{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  auto* out = reinterpret_cast<task_info_t>(&info);
  if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, out, &count) != KERN_SUCCESS) return std::nullopt;
  return info.resident_size;
#else
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  if (!(in >> size >> resident)) return std::nullopt;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
#endif
}

}  // namespace motley::bench
