#ifdef __linux__

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "machine/control_groups.h"

namespace motley::machine {
namespace {

namespace fs = std::filesystem;

/// Whether `item` is in the list, which has commas between its items.
bool lists(const std::string& list, std::string_view item) {
  std::istringstream items(list);
  for (std::string one; std::getline(items, one, ',');) {
    if (one == item) return true;
  }
  return false;
}

struct Mount {
  std::string root, point;  // the part of the hierarchy that is mounted, and where
};

/// Where the controller is mounted: version 1 if `version1`, else version 2.
std::optional<Mount> mount_of(const fs::path& root, std::string_view controller, bool version1) {
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string id, parent, device, type, source, options;
    Mount mount;
    before >> id >> parent >> device >> mount.root >> mount.point;
    after >> type >> source >> options;
    if (version1 ? type == "cgroup" && lists(options, controller) : type == "cgroup2") return mount;
  }
  return std::nullopt;
}

}  // namespace

void visit_control_groups(const fs::path& root, std::string_view controller,
                          const std::function<void(const fs::path& group, bool version1)>& visit) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version1 = !controllers.empty();
    if (version1 && !lists(controllers, controller)) continue;
    const std::optional<Mount> mount = mount_of(root, controller, version1);
    if (!mount) continue;
    std::string path = line.substr(second + 1);
    // A container sees its part of the hierarchy, and sometimes paths that start above it.
    if (mount->root != "/") path = path.starts_with(mount->root) ? path.substr(mount->root.size()) : std::string();
    fs::path group = root / fs::path(mount->point).relative_path();
    visit(group, version1);
    for (const fs::path& part : fs::path(path).relative_path()) {
      group /= part;
      visit(group, version1);
    }
  }
}

}  // namespace motley::machine

#endif
