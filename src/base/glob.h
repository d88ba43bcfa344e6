#pragma once
// Patterns of names, as a shell has them. Pure.

#include <string_view>

namespace motley {

/// "*" stands for any run of characters, "?" for one.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace motley
