#pragma once
// Settings of a run that stand in a file of the user's, instead of behind --set. Pure but for reading the file.

#include <string>
#include <vector>

#include "motley/result.h"

namespace motley::config {

/// The keys of a TOML file as "key=value", as load() and parse() take them. Errors: io; input, with the line: it is no
/// TOML, or has a key or a value that a run has not.
Result<std::vector<std::string>> read_settings(const std::string& path);

}  // namespace motley::config
