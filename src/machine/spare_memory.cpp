#include "machine/spare_memory.h"

#include <algorithm>

#include "base/format.h"

namespace motley::machine {

#if !defined(__linux__) && !defined(__APPLE__) && !defined(_WIN32)
std::optional<std::uint64_t> spare_memory_bytes(const std::filesystem::path& /*root*/) { return std::nullopt; }
#endif

std::optional<std::uint64_t> usable_memory_bytes() {
  constexpr std::uint64_t kMarginLeast = std::uint64_t{12} << 20, kMarginMost = std::uint64_t{512} << 20;
  const std::optional<std::uint64_t> spare = spare_memory_bytes();
  if (!spare) return std::nullopt;
  const std::uint64_t margin = std::clamp(*spare / 12, kMarginLeast, kMarginMost);
  return *spare > margin ? *spare - margin : 0;
}

std::string mebibytes(std::uint64_t bytes) { return formatted("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

Status check_memory_for(std::uint64_t bytes, const std::string& what_for, const std::string& hint) {
  const std::optional<std::uint64_t> free = usable_memory_bytes();
  if (!free || bytes <= *free) return {};
  return Error{ErrorCode::memory,
               what_for + ": expected " + mebibytes(bytes) + " of free memory, found " + mebibytes(*free), hint};
}

}  // namespace motley::machine
