#include "machine/process_memory.h"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

#include "machine/spare_memory.h"

#ifdef __linux__
#include <sys/resource.h>
#endif
#ifdef __APPLE__
#include <mach/mach.h>
#endif
#ifdef _WIN32
#include <windows.h>
// After it.
#include <psapi.h>
#endif

namespace motley::machine {

#ifdef __linux__

namespace {

struct Sizes {
  std::uint64_t resident = 0, peak = 0, data = 0;  // in bytes
};

Sizes sizes() {
  Sizes found;
  std::ifstream in("/proc/self/status");
  std::uint64_t kilobytes = 0;
  for (std::string word; in >> word;) {
    std::uint64_t* size = word == "VmRSS:" ? &found.resident : word == "VmHWM:" ? &found.peak : nullptr;
    if (word == "VmData:") size = &found.data;
    if (size != nullptr && in >> kilobytes) *size = kilobytes * 1024;
  }
  return found;
}

// There is one limit in a process, whoever asks for it.
std::mutex mutex;
int holders = 0;
rlimit limit_before{RLIM_INFINITY, RLIM_INFINITY};  // the first of them

}  // namespace

ProcessMemory process_memory() {
  const Sizes now = sizes();
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const std::optional<std::uint64_t> spare = usable_memory_bytes();
  return {now.resident, std::max(now.resident, now.peak), spare ? now.resident + *spare : 0};
}

ProcessMemoryLimit::ProcessMemoryLimit() {
  const std::lock_guard lock(mutex);
  if (holders++ > 0 || getrlimit(RLIMIT_DATA, &limit_before) != 0) return;
  const std::optional<std::uint64_t> spare = usable_memory_bytes();
  if (!spare) return;
  rlimit limit = limit_before;
  limit.rlim_cur = std::min<rlim_t>(limit_before.rlim_cur, sizes().data + *spare);
  static_cast<void>(setrlimit(RLIMIT_DATA, &limit));
}

ProcessMemoryLimit::~ProcessMemoryLimit() {
  const std::lock_guard lock(mutex);
  if (--holders == 0) static_cast<void>(setrlimit(RLIMIT_DATA, &limit_before));
}

#else

ProcessMemory process_memory() {
#ifdef __APPLE__
  task_vm_info_data_t info{};
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  if (task_info(mach_task_self(), TASK_VM_INFO, reinterpret_cast<task_info_t>(&info), &count) != 0) return {};
  const std::optional<std::uint64_t> spare = usable_memory_bytes();
  // The peak of the whole life: there is no other.
  return {info.phys_footprint, static_cast<std::uint64_t>(info.ledger_phys_footprint_peak),
          spare ? info.phys_footprint + *spare : 0};
#elif defined(_WIN32)
  PROCESS_MEMORY_COUNTERS counters{};
  if (::GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof counters) == 0) return {};
  const std::optional<std::uint64_t> spare = usable_memory_bytes();
  // The peak of the whole life: there is no other.
  return {counters.WorkingSetSize, counters.PeakWorkingSetSize, spare ? counters.WorkingSetSize + *spare : 0};
#else
  return {};
#endif
}

ProcessMemoryLimit::ProcessMemoryLimit() = default;
ProcessMemoryLimit::~ProcessMemoryLimit() = default;

#endif

}  // namespace motley::machine
