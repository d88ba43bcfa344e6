#include <windows.h>

#include <chrono>
#include <cstdint>

#include "machine/processor_time.h"

namespace motley::machine {
namespace {

double seconds(const FILETIME& time) {
  constexpr double kTicksPerSecond = 1e7;
  return static_cast<double>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime) / kTicksPerSecond;
}

}  // namespace

double processor_time_s() {
  FILETIME born{}, died{}, system{}, own{};
  if (::GetProcessTimes(::GetCurrentProcess(), &born, &died, &system, &own) == 0) return 0;
  return seconds(system) + seconds(own);
}

double thread_time_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace motley::machine
