#pragma once
// UTF-8, as much of it as control messages need: protobuf strings must be valid. Pure functions.

#include <cstddef>
#include <string>
#include <string_view>

namespace motley::wire {

/// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view text) noexcept;

/// `text` as well-formed UTF-8 of at most `bytes_max` bytes: each wrong byte becomes '?', and the cut is between
/// characters.
std::string to_utf8(std::string_view text, std::size_t bytes_max);

}  // namespace motley::wire
