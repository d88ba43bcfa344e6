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

/// `text` as one line for a screen: line breaks become spaces; control characters, and marks that hide letters or
/// change the direction of writing, become '?'. Of more than `characters_max` characters the last ones become one "…".
/// REQUIRES well-formed UTF-8, characters_max > 0.
std::string to_printable(std::string_view text, std::size_t characters_max);

}  // namespace motley::wire
