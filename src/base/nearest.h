#pragma once
// The word somebody probably meant: for unknown keys, recipes and commands. Pure.

#include <span>
#include <string>
#include <string_view>

namespace motley {

/// The known word nearest to `word` (insertions, deletions, replacements and swaps of neighbours, letter case ignored;
/// or an unfinished start of it); the first of equals. Empty when nothing is close.
std::string nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace motley
