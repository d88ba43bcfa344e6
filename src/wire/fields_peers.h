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
  static constexpr std::tuple kFields{Field{1, "id", &Source::id, Form::fixed},
                                      Field{2, "port", &Source::port},
                                      Field{3, "addresses", &Source::addresses, Form::plain, kAddressBytesMax},
                                      Field{4, "secret", &Source::secret, Form::whole, kGuestSecretBytes},
                                      Field{5, "spki", &Source::spki, Form::whole, kHashBytesMax},
                                      Field{6, "hops", &Source::hops}};
};

template <>
struct Table<Follows> {
  static constexpr std::string_view kName = "Follows";
  static constexpr std::uint32_t kKind = 38;
  static constexpr std::tuple kFields{Field{1, "id", &Follows::id, Form::fixed}};
};
template <>
struct Table<Unfollows> {
  static constexpr std::string_view kName = "Unfollows";
  static constexpr std::uint32_t kKind = 39;
  static constexpr std::tuple kFields{
      Field{1, "id", &Unfollows::id, Form::fixed}, Field{2, "version", &Unfollows::version},
      Field{3, "has", &Unfollows::has, Form::plain, kChunkBitmapBytesMax}, Field{4, "wrong", &Unfollows::wrong}};
};

template <>
struct Table<Merge> {
  static constexpr std::string_view kName = "Merge";
  static constexpr std::uint32_t kKind = 40;
  static constexpr std::tuple kFields{Field{1, "pass", &Merge::pass, Form::fixed}, Field{2, "lease", &Merge::lease},
                                      Field{3, "from", &Merge::from, Form::fixed}, Field{4, "before", &Merge::before},
                                      Field{5, "to", &Merge::to, Form::fixed},     Field{6, "hops", &Merge::hops}};
};
template <>
struct Table<Unmerge> {
  static constexpr std::string_view kName = "Unmerge";
  static constexpr std::uint32_t kKind = 41;
  static constexpr std::tuple kFields{Field{1, "pass", &Unmerge::pass, Form::fixed}, Field{2, "lease", &Unmerge::lease},
                                      Field{3, "has", &Unmerge::has, Form::plain, kChunkBitmapBytesMax},
                                      Field{4, "wrong", &Unmerge::wrong}};
};

}  // namespace motley::wire
