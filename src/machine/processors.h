#pragma once
// How many processors this process may keep busy. Any thread.

#include <filesystem>

namespace motley::machine {

/// With a quota of the system (a container's, a control group's) a part of one counts: 0.7, 2.5. At least 0.01.
/// `root`: of the file system; tests have one of their own.
double usable_processors(const std::filesystem::path& root = "/");

}  // namespace motley::machine
