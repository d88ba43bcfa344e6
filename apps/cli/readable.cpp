#include "readable.h"

#include <cstdint>
#include <utility>

namespace motley::cli {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

/// Bytes of the character that `first` begins; 0 when it begins none.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

bool printable(std::uint32_t character) {
  if (character < 0x20) return character == '\n' || character == '\t';
  return character < 0x7F || character > 0x9F;
}

/// Two bytes may still be no start of a character: overlong forms, surrogates, beyond U+10FFFF.
bool second_fits(unsigned char first, unsigned char second) {
  if ((second & 0xC0U) != 0x80) return false;
  if (first == 0xE0) return second >= 0xA0;
  if (first == 0xED) return second < 0xA0;
  if (first == 0xF0) return second >= 0x90;
  return first != 0xF4 || second < 0x90;
}

}  // namespace

std::string Readable::add(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  std::string out;
  if (!pending_.empty()) {
    const auto first = static_cast<unsigned char>(pending_[0]);
    const bool fits = pending_.size() == 1 ? second_fits(first, value) : (value & 0xC0U) == 0x80;
    if (!fits) out = finish();
  }
  pending_ += byte;
  const std::size_t length = length_of(static_cast<unsigned char>(pending_[0]));
  if (length == 0) return out + finish();
  return pending_.size() < length ? out : out + take();
}

std::string Readable::finish() {
  const bool some = !pending_.empty();
  pending_.clear();
  return some ? kReplacement : "";
}

std::string Readable::take() {
  const std::string bytes = std::exchange(pending_, {});
  // Of two bytes and more, only those of two can be control characters (U+0080 to U+009F).
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::uint32_t character = bytes.size() == 1   ? at(0)
                                  : bytes.size() == 2 ? ((at(0) & 0x1FU) << 6) | (at(1) & 0x3FU)
                                                      : 0x800U;
  return printable(character) ? bytes : kReplacement;
}

}  // namespace motley::cli
