// Writing control messages. The reading side is messages_decode.cpp; both follow fields.h.

#include "wire/messages.h"

#include <bit>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "wire/fields.h"
#include "wire/utf8.h"

namespace motley::wire {
namespace {

template <class Message>
void write_fields(protozero::pbf_writer& out, const Message& message);

// Values equal to the default of proto3 are left out; -0.0 is not the default.
template <class Owner, class Member>
void write_scalar(protozero::pbf_writer& out, const Field<Owner, Member>& field, const Member& value) {
  if constexpr (std::is_same_v<Member, double>) {
    if (std::bit_cast<std::uint64_t>(value) != 0) out.add_double(field.number, value);
  } else if constexpr (std::is_same_v<Member, float>) {
    if (std::bit_cast<std::uint32_t>(value) != 0) out.add_float(field.number, value);
  } else if constexpr (std::is_enum_v<Member>) {
    MOTLEY_ASSERT(static_cast<unsigned>(value) != 0);
    out.add_enum(field.number, static_cast<std::int32_t>(value));
  } else {
    static_assert(std::is_unsigned_v<Member>);
    if (value == 0) return;
    if (field.form == Form::fixed) {
      out.add_fixed64(field.number, value);
    } else {
      out.add_uint64(field.number, value);
    }
  }
}

template <class Owner, class Member>
void write_field(protozero::pbf_writer& out, const Field<Owner, Member>& field, const Member& value) {
  if constexpr (std::is_same_v<Member, std::string>) {
    if (value.empty()) return;
    if (field.form == Form::text) {
      out.add_string(field.number, to_utf8(value, field.bytes_max));
    } else {
      out.add_string(field.number, value);
    }
  } else if constexpr (std::is_same_v<Member, std::vector<std::uint8_t>>) {
    if (value.empty()) return;
    out.add_bytes(field.number, reinterpret_cast<const char*>(value.data()), value.size());
  } else if constexpr (std::is_same_v<Member, std::vector<std::int64_t>>) {
    out.add_packed_int64(field.number, value.begin(), value.end());
  } else if constexpr (std::is_same_v<Member, std::vector<double>>) {
    out.add_packed_double(field.number, value.begin(), value.end());
  } else if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
    for (const std::string& item : value) out.add_string(field.number, item);
  } else if constexpr (std::is_same_v<Member, std::vector<LayoutEntry>> ||
                       std::is_same_v<Member, std::vector<StepRange>>) {
    for (const auto& item : value) {
      protozero::pbf_writer nested(out, field.number);
      write_fields(nested, item);
    }
  } else {
    write_scalar(out, field, value);
  }
}

template <class Message>
void write_fields(protozero::pbf_writer& out, const Message& message) {
  std::apply([&](const auto&... field) { (write_field(out, field, message.*field.member), ...); },
             Table<Message>::kFields);
}

}  // namespace

SharedBytes encode(const Message& message) {
  auto buffer = std::make_shared<std::string>();
  {
    protozero::pbf_writer envelope(*buffer);
    std::visit(
        [&](const auto& inner) {
          using Inner = std::decay_t<decltype(inner)>;
          static_assert(Table<Inner>::kKind > 0 && Table<Inner>::kKind < kKindsEnd);
          {
            protozero::pbf_writer body(envelope, Table<Inner>::kKind);
            write_fields(body, inner);
          }
          // Protozero takes a nested message without fields back, but here its number is the message.
          if (buffer->empty()) envelope.add_message(Table<Inner>::kKind, std::string());
        },
        message);
  }
  MOTLEY_ASSERT(!buffer->empty());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(buffer->data(), buffer->size()));
  return {std::move(buffer), bytes};
}

std::string_view name_of(const Message& message) noexcept {
  return std::visit([](const auto& inner) { return Table<std::decay_t<decltype(inner)>>::kName; }, message);
}

std::string reason_of(const Bye& bye) {
  std::string text = bye.expected.empty() ? "" : "expected " + bye.expected;
  if (!bye.found.empty()) text += (text.empty() ? "" : ", found ") + bye.found;
  return text;
}

}  // namespace motley::wire
