#pragma once
// What a table of fields is made of. Pure data.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/limits.h"

namespace motley::wire {

/// How a field looks on the wire where its C++ type leaves a choice.
enum class Form : std::uint8_t {
  plain,  // integers as varints, strings as they are
  fixed,  // 64-bit identifiers whose high bits are in use: always eight bytes
  whole,  // byte strings of bytes_max bytes, or of none
  text,  // strings for people: cut to the limit and made valid UTF-8 before they are sent, printable when they are read
};

template <class Owner, class Member>
struct Field {
  std::uint32_t number = 0;
  std::string_view name;
  Member Owner::* member = nullptr;
  Form form = Form::plain;
  std::size_t bytes_max = kStringBytesMax;              // strings and byte strings
  std::size_t characters_max = kSentenceCharactersMax;  // of text, as it is read
};
template <class Owner, class Member, class... Rest>
Field(std::uint32_t, const char*, Member Owner::*, Rest...) -> Field<Owner, Member>;

template <class Message>
struct Table;

}  // namespace motley::wire
