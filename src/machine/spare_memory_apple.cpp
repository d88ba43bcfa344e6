#ifdef __APPLE__

#include <mach/mach.h>
#include <unistd.h>

#include "machine/spare_memory.h"

namespace motley::machine {

std::optional<std::uint64_t> spare_memory_bytes(const std::filesystem::path& /*root*/) {
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) != 0) {
    return std::nullopt;
  }
  const std::uint64_t free = std::uint64_t{pages.free_count} + pages.inactive_count + pages.purgeable_count;
  return free * static_cast<std::uint64_t>(getpagesize());
}

}  // namespace motley::machine

#endif
