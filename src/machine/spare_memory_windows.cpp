#include <windows.h>

#include <algorithm>

#include "machine/spare_memory.h"

namespace motley::machine {

// What is free in memory, and what may still be promised: with no room in the page file an allocation fails before.
std::optional<std::uint64_t> spare_memory_bytes(const std::filesystem::path& /*root*/) {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  if (::GlobalMemoryStatusEx(&status) == 0) return std::nullopt;
  return std::min<std::uint64_t>(status.ullAvailPhys, status.ullAvailPageFile);
}

}  // namespace motley::machine
