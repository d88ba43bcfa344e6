#pragma once
// The control groups that a process is in, as Linux shows them. Internal to machine/. Any thread.

#include <filesystem>
#include <functional>
#include <string_view>

namespace motley::machine {

/// Calls with the folder of each group that the process is in with regard to `controller` ("cpu", "memory"), from the
/// outermost that it can see to its own. `root`: of the file system.
void visit_control_groups(const std::filesystem::path& root, std::string_view controller,
                          const std::function<void(const std::filesystem::path& group, bool version1)>& visit);

}  // namespace motley::machine
