#include "wire/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace motley::wire {
namespace {

unsigned byte_at(std::string_view text, std::size_t index) noexcept { return static_cast<unsigned char>(text[index]); }

// Length of the well-formed character at the start of `text`, 0 if there is none (Unicode 15, table 3-7).
std::size_t character_length(std::string_view text) noexcept {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  }
  if (length == 0 || text.size() < length) return 0;
  if (byte_at(text, 1) < low || byte_at(text, 1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte_at(text, i) < 0x80 || byte_at(text, i) > 0xBF) return 0;
  }
  return length;
}

// REQUIRES `text` is one well-formed character.
std::uint32_t code_point(std::string_view text) noexcept {
  constexpr std::array<unsigned, 5> kFirstBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  std::uint32_t value = byte_at(text, 0) & kFirstBits.at(text.size());
  for (std::size_t i = 1; i < text.size(); ++i) value = (value << 6U) | (byte_at(text, i) & 0x3FU);
  return value;
}

bool is_steering(std::uint32_t character) noexcept {
  if (character < 0xA0) return character < 0x20 || character >= 0x7F;
  return (character >= 0x200B && character <= 0x200F) || (character >= 0x2028 && character <= 0x202E) ||
         (character >= 0x2060 && character <= 0x206F) || character == 0xFEFF;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text, std::size_t bytes_max) {
  std::string out;
  out.reserve(std::min(text.size(), bytes_max));
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    if (out.size() + taken > bytes_max) break;
    if (length == 0) {
      out.push_back('?');
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string to_printable(std::string_view text, std::size_t characters_max) {
  std::string out;
  out.reserve(std::min(text.size(), 4 * characters_max));
  std::size_t last = 0;  // where the newest character begins
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == characters_max) return out.replace(last, std::string::npos, "…");
    last = out.size();
    const std::string_view character = text.substr(0, std::max<std::size_t>(character_length(text), 1));
    const bool breaks = character == "\n" || character == "\r" || character == "\t";
    if (is_steering(code_point(character))) {
      out.push_back(breaks ? ' ' : '?');
    } else {
      out.append(character);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace motley::wire
