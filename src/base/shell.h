#pragma once
// Words of a command line. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace motley {

/// As a shell reads it back.
std::string in_shell(std::string_view word);
/// Likewise, with a space between two.
std::string in_shell(const std::vector<std::string>& words);

}  // namespace motley
