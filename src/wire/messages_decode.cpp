// Reading control messages: every length is held against its limit before anything is allocated. Protozero reports
// damage by exceptions; none of them leaves this file.

#include <bit>
#include <exception>
#include <limits>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "base/little_endian.h"
#include "wire/fields.h"
#include "wire/messages.h"
#include "wire/utf8.h"

namespace motley::wire {
namespace {

using protozero::pbf_wire_type;

constexpr const char* kDamagedHint = "the connection is damaged or the other side has a bug";
constexpr const char* kNewerHint = "install the same version of motley on both machines";

template <class Enum>
constexpr std::uint64_t kEnumMax = 0;
template <>
constexpr std::uint64_t kEnumMax<DType> = static_cast<std::uint64_t>(DType::boolean);
template <>
constexpr std::uint64_t kEnumMax<TensorKind> = static_cast<std::uint64_t>(TensorKind::alias);

std::string_view word_of(pbf_wire_type type) noexcept {
  switch (type) {
    case pbf_wire_type::varint:
      return "a varint";
    case pbf_wire_type::fixed64:
      return "8 bytes";
    case pbf_wire_type::length_delimited:
      return "a length and bytes";
    case pbf_wire_type::fixed32:
      return "4 bytes";
    default:
      return "something unknown";
  }
}

struct Where {  // words are put together only when something is wrong
  std::string_view message;
  std::string_view field;
};

std::string operator+(const Where& where, std::string_view text) {
  std::string out(where.message);
  if (!where.field.empty()) out.append(".").append(where.field);
  return out.append(text);
}

// The first mistake ends the reading; every method returns false from then on.
class Decoder {
 public:
  [[nodiscard]] Error take_error() && {
    MOTLEY_ASSERT(error_.has_value());
    return std::move(*error_);
  }

  bool fail(std::string message, const char* hint = kDamagedHint) {
    if (!error_) error_ = Error{ErrorCode::protocol, "control message: " + std::move(message), hint};
    return false;
  }

  // Protozero cuts lengths to 32 bits, so that 2^63 would read as 0: hold the whole number against what is left.
  bool check_length(const protozero::pbf_reader& in, const Where& where) {
    if (in.wire_type() != pbf_wire_type::length_delimited) return true;
    const protozero::data_view rest = in.data();
    const char* at = rest.data();
    const char* const end = rest.data() + rest.size();
    const std::uint64_t length = protozero::decode_varint(&at, end);
    const auto left = static_cast<std::uint64_t>(end - at);
    if (length <= left) return true;
    return fail(where + ": expected at most the " + std::to_string(left) + " bytes that are left, found a length of " +
                std::to_string(length));
  }

  bool skip(protozero::pbf_reader& in, const Where& where) {
    if (!check_length(in, where)) return false;
    in.skip();
    return true;
  }

  template <class Message>
  bool read_fields(protozero::pbf_reader in, Message& out) {
    constexpr Where kWhere{Table<Message>::kName, {}};
    while (in.next()) {
      bool known = false;
      bool fine = true;
      std::apply([&](const auto&... field) { ((known = known || try_field(in, field, kWhere, out, fine)), ...); },
                 Table<Message>::kFields);
      if (!known) fine = skip(in, kWhere);
      if (!fine) return false;
    }
    return true;
  }

 private:
  // True if the field at hand is this one; `fine` says whether it could be read.
  template <class Message, class Descriptor>
  bool try_field(protozero::pbf_reader& in, const Descriptor& field, const Where& where, Message& out, bool& fine) {
    if (in.tag() != field.number) return false;
    fine = read_field(in, field, {where.message, field.name}, out.*field.member);
    return true;
  }

  bool expect(const protozero::pbf_reader& in, pbf_wire_type type, const Where& where) {
    if (in.wire_type() != type) {
      return fail(where + ": expected " + std::string(word_of(type)) + ", found " +
                  std::string(word_of(in.wire_type())));
    }
    return check_length(in, where);
  }

  bool too_many(const Where& where, std::size_t most) {
    return fail(where + ": expected at most " + std::to_string(most) + " items, found more");
  }

  bool read_view(protozero::pbf_reader& in, const Where& where, std::size_t most, std::string_view& out) {
    if (!expect(in, pbf_wire_type::length_delimited, where)) return false;
    const protozero::data_view view = in.get_view();
    if (view.size() > most) {
      return fail(where + ": expected at most " + std::to_string(most) + " bytes, found " +
                  std::to_string(view.size()));
    }
    out = {view.data(), view.size()};
    return true;
  }

  bool read_string(protozero::pbf_reader& in, const Where& where, std::size_t most, std::string& out) {
    std::string_view view;
    if (!read_view(in, where, most, view)) return false;
    if (!is_utf8(view)) return fail(where + ": expected UTF-8, found other bytes");
    out.assign(view);
    return true;
  }

  bool read_shape(protozero::pbf_reader& in, const Where& where, std::vector<std::int64_t>& out) {
    if (in.wire_type() == pbf_wire_type::varint) {  // not packed: older writers may
      if (out.size() == kShapeDimensionsMax) return too_many(where, kShapeDimensionsMax);
      out.push_back(in.get_int64());
      return true;
    }
    if (!expect(in, pbf_wire_type::length_delimited, where)) return false;
    for (const std::int64_t size : in.get_packed_int64()) {
      if (out.size() == kShapeDimensionsMax) return too_many(where, kShapeDimensionsMax);
      out.push_back(size);
    }
    return true;
  }

  bool read_doubles(protozero::pbf_reader& in, const Where& where, std::vector<double>& out) {
    if (in.wire_type() == pbf_wire_type::fixed64) {  // not packed: older writers may
      if (out.size() == kScoresMax) return too_many(where, kScoresMax);
      out.push_back(in.get_double());
      return true;
    }
    std::string_view view;
    if (!read_view(in, where, kScoresMax * sizeof(double), view)) return false;
    if (view.size() % sizeof(double) != 0)
      return fail(where + ": expected whole numbers of eight bytes, found a part of one");
    const auto* bytes = reinterpret_cast<const std::byte*>(view.data());
    for (std::size_t at = 0; at < view.size(); at += sizeof(double)) {
      if (out.size() == kScoresMax) return too_many(where, kScoresMax);
      out.push_back(std::bit_cast<double>(load_le<std::uint64_t>(bytes + at)));
    }
    return true;
  }

  bool read_entry(protozero::pbf_reader& in, const Where& where, std::vector<LayoutEntry>& out) {
    if (!expect(in, pbf_wire_type::length_delimited, where)) return false;
    if (out.size() == kLayoutEntriesMax) return too_many(where, kLayoutEntriesMax);
    LayoutEntry& entry = out.emplace_back();
    entry.dtype = DType{};  // must be said: proto3 leaves zeros out, and zero is no dtype
    entry.kind = TensorKind{};
    if (!read_fields(in.get_message(), entry)) return false;
    if (entry.dtype == DType{}) return fail("LayoutEntry.dtype: expected 1 to 8, found none");
    if (entry.kind == TensorKind{}) return fail("LayoutEntry.kind: expected 1 to 6, found none");
    return true;
  }

  bool read_span(protozero::pbf_reader& in, const Where& where, std::vector<StepRange>& out) {
    if (!expect(in, pbf_wire_type::length_delimited, where)) return false;
    if (out.size() == kSpansMax) return too_many(where, kSpansMax);
    return read_fields(in.get_message(), out.emplace_back());
  }

  template <class Integer>
  bool read_integer(protozero::pbf_reader& in, Form form, const Where& where, std::uint64_t most, Integer& out) {
    if (!expect(in, form == Form::fixed ? pbf_wire_type::fixed64 : pbf_wire_type::varint, where)) return false;
    const std::uint64_t value = form == Form::fixed ? in.get_fixed64() : in.get_uint64();
    if (value > most || (std::is_enum_v<Integer> && value == 0)) {
      return fail(where + ": expected " + (std::is_enum_v<Integer> ? "1" : "0") + " to " + std::to_string(most) +
                      ", found " + std::to_string(value),
                  kNewerHint);
    }
    out = static_cast<Integer>(value);
    return true;
  }

  template <class Owner, class Member>
  bool read_field(protozero::pbf_reader& in, const Field<Owner, Member>& field, const Where& where, Member& out) {
    if constexpr (std::is_same_v<Member, std::string>) {
      if (!read_string(in, where, field.bytes_max, out)) return false;
      if (field.form == Form::text) out = to_printable(out, field.characters_max);
      return true;
    } else if constexpr (std::is_same_v<Member, std::vector<std::uint8_t>>) {
      std::string_view view;
      if (!read_view(in, where, field.bytes_max, view)) return false;
      if (field.form == Form::whole && !view.empty() && view.size() != field.bytes_max) {
        return fail(where + ": expected " + std::to_string(field.bytes_max) + " bytes or none, found " +
                    std::to_string(view.size()));
      }
      out.assign(view.begin(), view.end());
      return true;
    } else if constexpr (std::is_same_v<Member, std::vector<std::int64_t>>) {
      return read_shape(in, where, out);
    } else if constexpr (std::is_same_v<Member, std::vector<double>>) {
      return read_doubles(in, where, out);
    } else if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
      if (out.size() == kFeaturesMax) return too_many(where, kFeaturesMax);
      return read_string(in, where, field.bytes_max, out.emplace_back());
    } else if constexpr (std::is_same_v<Member, std::vector<LayoutEntry>>) {
      return read_entry(in, where, out);
    } else if constexpr (std::is_same_v<Member, std::vector<StepRange>>) {
      return read_span(in, where, out);
    } else if constexpr (std::is_same_v<Member, double>) {
      if (!expect(in, pbf_wire_type::fixed64, where)) return false;
      out = in.get_double();
      return true;
    } else if constexpr (std::is_same_v<Member, float>) {
      if (!expect(in, pbf_wire_type::fixed32, where)) return false;
      out = in.get_float();
      return true;
    } else if constexpr (std::is_enum_v<Member>) {
      return read_integer(in, field.form, where, kEnumMax<Member>, out);
    } else {
      static_assert(std::is_unsigned_v<Member>);
      return read_integer(in, field.form, where, std::numeric_limits<Member>::max(), out);
    }
  }

  std::optional<Error> error_;
};

template <class Inner>
bool read_kind(Decoder& decoder, protozero::pbf_reader& in, std::optional<Message>& out) {
  if (in.tag() != Table<Inner>::kKind) return false;
  if (in.wire_type() != pbf_wire_type::length_delimited) {
    decoder.fail("kind " + std::to_string(in.tag()) + " (" + std::string(Table<Inner>::kName) +
                 "): expected a message, found " + std::string(word_of(in.wire_type())));
    return true;
  }
  if (!decoder.check_length(in, {Table<Inner>::kName, {}})) return true;
  Inner inner;
  if (decoder.read_fields(in.get_message(), inner)) out = std::move(inner);
  return true;
}

template <class... Inner>
bool read_any(Decoder& decoder, protozero::pbf_reader& in, std::optional<Message>& out,
              std::type_identity<std::variant<Inner...>> /*kinds*/) {
  return (read_kind<Inner>(decoder, in, out) || ...);
}

Result<Message> decode_envelope(protozero::pbf_reader in) {
  Decoder decoder;
  std::optional<Message> message;
  while (in.next()) {
    if (in.tag() >= kKindsEnd) {
      if (!decoder.skip(in, {"envelope", {}})) return std::move(decoder).take_error();
      continue;
    }
    if (message) {
      decoder.fail("expected one message in the envelope, found a second, of kind " + std::to_string(in.tag()));
      return std::move(decoder).take_error();
    }
    if (!read_any(decoder, in, message, std::type_identity<Message>{})) {
      decoder.fail("unknown kind " + std::to_string(in.tag()) + ", expected " + std::string(kKindsKnown), kNewerHint);
    }
    if (!message) return std::move(decoder).take_error();
  }
  if (message) return std::move(*message);
  decoder.fail("expected one message in the envelope, found none");
  return std::move(decoder).take_error();
}

}  // namespace

Result<Message> decode(std::span<const std::byte> bytes) {
  if (bytes.size() > kControlBytesMax) {
    return Error{ErrorCode::protocol,
                 "control message: expected at most " + std::to_string(kControlBytesMax) + " bytes, found " +
                     std::to_string(bytes.size()),
                 kDamagedHint};
  }
  try {
    return decode_envelope({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const protozero::exception& damage) {
    return Error{ErrorCode::protocol,
                 "control message: expected protobuf fields, found damaged ones (" + std::string(damage.what()) + ")",
                 kDamagedHint};
  }
}

}  // namespace motley::wire
