#ifdef __linux__

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

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

/// Whether `item` is in the list, which has commas between its items.
bool lists(const std::string& list, std::string_view item) {
  std::istringstream items(list);
  for (std::string one; std::getline(items, one, ',');) {
    if (one == item) return true;
  }
  return false;
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

struct Mount {
  std::string root, point;  // the part of the hierarchy that is mounted, and where
};

/// Where the memory controller is mounted: version 1 if `version1`, else version 2.
std::optional<Mount> memory_mount(const fs::path& root, bool version1) {
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string id, parent, device, type, source, options;
    Mount mount;
    before >> id >> parent >> device >> mount.root >> mount.point;
    after >> type >> source >> options;
    if (version1 ? type == "cgroup" && lists(options, "memory") : type == "cgroup2") return mount;
  }
  return std::nullopt;
}

/// The least that any of the group's ancestors and the group itself can spare.
std::uint64_t spare_of_hierarchy(const fs::path& root, std::string path, bool version1) {
  const std::optional<Mount> mount = memory_mount(root, version1);
  if (!mount) return kNoLimit;
  // A container sees its part of the hierarchy, and sometimes paths that start above it.
  if (mount->root != "/") path = path.starts_with(mount->root) ? path.substr(mount->root.size()) : std::string();
  const fs::path top = root / fs::path(mount->point).relative_path();
  std::uint64_t spare = kNoLimit;
  fs::path group = top;
  const auto look = [&] { spare = std::min(spare, spare_of_group(group, version1 ? kVersion1 : kVersion2)); };
  look();
  for (const fs::path& part : fs::path(path).relative_path()) {
    group /= part;
    look();
  }
  return spare;
}

std::uint64_t spare_of_groups(const fs::path& root) {
  std::uint64_t spare = kNoLimit;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version2 = controllers.empty();
    if (!version2 && !lists(controllers, "memory")) continue;
    spare = std::min(spare, spare_of_hierarchy(root, line.substr(second + 1), !version2));
  }
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
