#include <windows.h>

#include <algorithm>
#include <bit>
#include <thread>

#include "machine/processor.h"

namespace motley::machine {

std::string processor_name() {
  char name[256] = {};
  DWORD size = sizeof name - 1;
  const LSTATUS status = ::RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                                        "ProcessorNameString", RRF_RT_REG_SZ, nullptr, name, &size);
  std::string text = status == ERROR_SUCCESS ? name : "processor";
  while (text.ends_with(' ')) text.pop_back();  // some are filled up
  return text.empty() ? "processor" : text;
}

std::uint64_t memory_bytes() noexcept {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return ::GlobalMemoryStatusEx(&status) != 0 ? status.ullTotalPhys : 0;
}

// A process of more than 64 processors is in several groups, and has no mask of its own there.
unsigned allowed_processors() noexcept {
  DWORD_PTR own = 0, all = 0;
  if (::GetProcessAffinityMask(::GetCurrentProcess(), &own, &all) != 0 && own != 0)
    return static_cast<unsigned>(std::popcount(own));
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace motley::machine
