#pragma once
// This process's command line, as every user of the machine can read it.

#include <string_view>

namespace motley::machine {

/// Of each argument that begins with `prefix` (a token), what follows the prefix becomes crosses in the system's own
/// copy. Words that were read before stay as they were. Where the system keeps its copy out of reach, nothing happens.
/// Any thread, while no other one reads argv.
void hide_arguments(std::string_view prefix) noexcept;

}  // namespace motley::machine
