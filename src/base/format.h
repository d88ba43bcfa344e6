#pragma once
// Numbers in sentences.

#include <array>
#include <cstdio>
#include <string>

namespace motley {

/// What printf() makes of them, in at most 255 bytes.
std::string formatted(const char* pattern, auto... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

}  // namespace motley
