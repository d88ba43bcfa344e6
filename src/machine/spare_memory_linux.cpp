#ifdef __linux__

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

#include "machine/control_groups.h"
#include "machine/spare_memory.h"

namespace motley::machine {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t less(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

/// The only number in a file; no limit where there is no such file, or where it says "max".
std::uint64_t number_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? value : kNoLimit;
}

/// The value of `key` in a file of lines "key value" or "key value kB"; 0 where there is none.
std::uint64_t value_in(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, unit;
    std::uint64_t value = 0;
    if (words >> name >> value && name == key) return words >> unit && unit == "kB" ? value * 1024 : value;
  }
  return 0;
}

struct Names {
  const char *limit, *second_limit, *usage, *inactive, *active, *mapped;
};
constexpr Names kVersion1{"memory.limit_in_bytes", "",
                          "memory.usage_in_bytes", "total_inactive_file",
                          "total_active_file",     "total_mapped_file"};
constexpr Names kVersion2{"memory.max", "memory.high", "memory.current", "inactive_file", "active_file", "file_mapped"};

std::uint64_t spare_of_group(const fs::path& group, const Names& names) {
  std::uint64_t limit = number_in(group / names.limit);
  if (*names.second_limit != '\0') limit = std::min(limit, number_in(group / names.second_limit));
  const std::uint64_t usage = number_in(group / names.usage);
  if (limit == kNoLimit || usage == kNoLimit) return kNoLimit;
  // Files that were read count as usage, but go when there is need; not those that are mapped, as programs are.
  const fs::path stat = group / "memory.stat";
  const std::uint64_t files = value_in(stat, names.inactive) + value_in(stat, names.active);
  return less(limit, less(usage, less(files, value_in(stat, names.mapped))));
}

/// The least that any of the process's groups can spare.
std::uint64_t spare_of_groups(const fs::path& root) {
  std::uint64_t spare = kNoLimit;
  visit_control_groups(root, "memory", [&](const fs::path& group, bool version1) {
    spare = std::min(spare, spare_of_group(group, version1 ? kVersion1 : kVersion2));
  });
  return spare;
}

std::uint64_t spare_of_process(const fs::path& root) {
  std::uint64_t spare = kNoLimit;
  const auto look = [&](auto resource, std::size_t field) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    std::ifstream in(root / "proc/self/statm");
    std::uint64_t pages = 0;
    for (std::size_t i = 0; i <= field; ++i) in >> pages;
    spare = std::min(spare, less(limit.rlim_cur, pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))));
  };
  look(RLIMIT_AS, 0);
  look(RLIMIT_DATA, 5);
  return spare;
}

}  // namespace

std::optional<std::uint64_t> spare_memory_bytes(const fs::path& root) {
  const std::uint64_t available = value_in(root / "proc/meminfo", "MemAvailable:");
  if (available == 0) return std::nullopt;
  return std::min({available, spare_of_groups(root), spare_of_process(root)});
}

}  // namespace motley::machine

#endif
