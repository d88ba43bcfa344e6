#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>

#include "wire/fields.h"
#include "wire/utf8.h"

namespace motley::wire {
namespace {

template <class Message>
Message any_message();

void fill(std::string& out) { out = to_printable(to_utf8(*rc::gen::arbitrary<std::string>(), 64), 64); }
void fill(double& out) { out = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>()); }
void fill(float& out) { out = std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>()); }
void fill(std::uint32_t& out) { out = *rc::gen::arbitrary<std::uint32_t>(); }
void fill(bool& out) { out = *rc::gen::arbitrary<bool>(); }
void fill(std::uint64_t& out) { out = *rc::gen::arbitrary<std::uint64_t>(); }
void fill(DType& out) { out = static_cast<DType>(*rc::gen::inRange(1, 9)); }
void fill(TensorKind& out) { out = static_cast<TensorKind>(*rc::gen::inRange(1, 7)); }
void fill(std::vector<std::uint8_t>& out) {
  out = *rc::gen::container<std::vector<std::uint8_t>>(32, rc::gen::arbitrary<std::uint8_t>());
}
void fill(std::vector<std::int64_t>& out) {
  const auto count = static_cast<std::size_t>(*rc::gen::inRange(0, 5));
  out = *rc::gen::container<std::vector<std::int64_t>>(count, rc::gen::arbitrary<std::int64_t>());
}
void fill(std::vector<std::string>& out) {
  out.resize(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
  for (std::string& item : out) fill(item);
}
void fill(std::vector<double>& out) {
  out.resize(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
  for (double& item : out) fill(item);
}
void fill(std::vector<StepRange>& out) {
  out.resize(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
  for (StepRange& item : out) item = any_message<StepRange>();
}
void fill(std::vector<LayoutEntry>& out) {
  out.resize(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
  for (LayoutEntry& item : out) item = any_message<LayoutEntry>();
}

template <class Owner, class Member>
void fill(Member& out, const Field<Owner, Member>& field) {
  fill(out);
  if constexpr (std::is_same_v<Member, std::vector<std::uint8_t>>) {
    if (field.form == Form::whole) out.resize(*rc::gen::arbitrary<bool>() ? field.bytes_max : 0);
  }
  if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
    for (std::string& item : out) item = to_utf8(item, field.bytes_max);
  }
}

template <class Message>
Message any_message() {
  Message out;
  std::apply([&out](const auto&... field) { (fill(out.*field.member, field), ...); }, Table<Message>::kFields);
  return out;
}

template <class Inner>
void check_kind() {
  const SharedBytes bytes = encode(any_message<Inner>());
  const auto decoded = decode(bytes.bytes());
  RC_ASSERT(decoded.ok());
  RC_ASSERT(std::holds_alternative<Inner>(*decoded));
  // Bytes rather than values, because NaN is not equal to itself.
  RC_ASSERT(std::ranges::equal(encode(*decoded).bytes(), bytes.bytes()));
}

template <class... Inner>
void check_all(std::type_identity<std::variant<Inner...>> /*all*/) {
  (check_kind<Inner>(), ...);
}

RC_GTEST_PROP(Messages, EveryKindComesBack, ()) { check_all(std::type_identity<Message>{}); }

RC_GTEST_PROP(Messages, WhatIsAcceptedIsWrittenTheSameWayTwice, (std::vector<std::uint8_t> bytes)) {
  const auto decoded = decode(std::as_bytes(std::span(bytes)));
  if (!decoded.ok()) {
    RC_ASSERT(decoded.error().code == ErrorCode::protocol);
    return;
  }
  const SharedBytes once = encode(*decoded);
  const auto again = decode(once.bytes());
  RC_ASSERT(again.ok());
  RC_ASSERT(std::ranges::equal(encode(*again).bytes(), once.bytes()));
}

// Damage to one byte of a real message: refused, or another message of the same kind; never a crash.
RC_GTEST_PROP(Messages, OneWrongByteDoesNoHarm, (std::uint16_t place, std::uint8_t value)) {
  const SharedBytes good = encode(any_message<Ready>());
  std::vector<std::byte> bad(good.bytes().begin(), good.bytes().end());
  bad[place % bad.size()] = static_cast<std::byte>(value);
  const auto decoded = decode(bad);
  if (decoded.ok()) RC_ASSERT(decode(encode(*decoded).bytes()).ok());
}

RC_GTEST_PROP(Utf8, RepairedTextIsValidAndShortEnough, (std::string text, std::uint8_t bytes_max)) {
  const std::string repaired = to_utf8(text, bytes_max);
  RC_ASSERT(is_utf8(repaired));
  RC_ASSERT(repaired.size() <= bytes_max);
  if (is_utf8(text) && text.size() <= bytes_max) RC_ASSERT(repaired == text);
}

}  // namespace
}  // namespace motley::wire
