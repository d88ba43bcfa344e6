#pragma once
// The part of fields.h that is about machines which the coordinator brings together. Pure data.

#include <cstdint>
#include <string_view>
#include <tuple>

#include "wire/field.h"
#include "wire/messages.h"

namespace motley::wire {

template <>
struct Table<Guest> {
  static constexpr std::string_view kName = "Guest";
  static constexpr std::uint32_t kKind = 36;
  static constexpr std::tuple kFields{Field{1, "id", &Guest::id, Form::fixed},
                                      Field{2, "secret", &Guest::secret, Form::whole, kGuestSecretBytes},
                                      Field{3, "spki", &Guest::spki, Form::whole, kHashBytesMax}};
};
template <>
struct Table<Source> {
  static constexpr std::string_view kName = "Source";
  static constexpr std::uint32_t kKind = 37;
  static constexpr std::tuple kFields{Field{1, "id", &Source::id, Form::fixed}, Field{2, "port", &Source::port},
                                      Field{3, "addresses", &Source::addresses, Form::plain, kAddressBytesMax},
                                      Field{4, "secret", &Source::secret, Form::whole, kGuestSecretBytes},
                                      Field{5, "spki", &Source::spki, Form::whole, kHashBytesMax}};
};

}  // namespace motley::wire
