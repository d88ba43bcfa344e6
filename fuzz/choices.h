#pragma once
// The bytes of a fuzzer's input as decisions, and values of messages that have been trouble elsewhere. One thread.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "motley/layout.h"
#include "wire/fields.h"
#include "wire/messages.h"

namespace motley::fuzz {

class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> input) : rest_(input) {}
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  /// 0 when there are no more.
  std::uint8_t byte() noexcept {
    if (rest_.empty()) return 0;
    const std::uint8_t first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }
  std::size_t below(std::size_t count) noexcept { return byte() % count; }

  std::uint64_t number(std::uint64_t was) noexcept {
    const std::uint8_t which = byte();
    switch (which & 15U) {
      case 0:
        return 0;
      case 1:
        return was - 1;
      case 2:
        return was + 1;
      case 3:
        return was * 2;
      case 4:
        return byte();
      case 5:
        return std::uint64_t{byte()} << 56 | (was & 0xFFFFFFFFFFFFFFU);  // another kind of pass
      case 6:
        return std::numeric_limits<std::uint64_t>::max();
      case 7:
        return std::numeric_limits<std::uint64_t>::max() - was;
      case 8:
        return std::numeric_limits<std::uint32_t>::max();
      case 9:
        return was ^ (std::uint64_t{1} << (byte() & 63U));
      default:
        return (std::uint64_t{1} << (byte() & 63U)) + (which >> 4U) - 1;
    }
  }

  double real(double was) noexcept {
    switch (below(12)) {
      case 0:
        return 0;
      case 1:
        return -was;
      case 2:
        return std::numeric_limits<double>::quiet_NaN();
      case 3:
        return std::numeric_limits<double>::infinity();
      case 4:
        return -std::numeric_limits<double>::infinity();
      case 5:
        return 1e308;
      case 6:
        return std::numeric_limits<double>::denorm_min();
      case 7:
        return -1e308;
      case 8:
        return 1e30;
      case 9:
        return was * 3;
      case 10:
        return 1e-30;
      default:
        return byte();
    }
  }

 private:
  std::span<const std::uint8_t> rest_;
};

template <class Owner>
void change_a_field(Choices& choices, Owner& owner);

/// Something that the wire's tables describe field by field.
template <class Member>
concept Described = requires { wire::Table<Member>::kFields; };

template <class Member>
void change(Choices& choices, Member& value) {
  if constexpr (std::is_same_v<Member, bool>) {
    value = !value;
  } else if constexpr (std::is_floating_point_v<Member>) {
    value = static_cast<Member>(choices.real(static_cast<double>(value)));
  } else if constexpr (std::is_enum_v<Member>) {
    value = static_cast<Member>(1 + choices.below(6));
  } else if constexpr (std::is_integral_v<Member>) {
    value = static_cast<Member>(choices.number(static_cast<std::uint64_t>(value)));
  } else if constexpr (std::is_same_v<Member, std::string>) {
    value.assign(choices.below(4) * 30, static_cast<char>('a' + choices.below(26)));
  } else if constexpr (Described<Member>) {
    change_a_field(choices, value);
  } else {  // a list
    const std::size_t at = choices.byte();
    if (at < 64) {
      value.resize(at);
    } else if (!value.empty()) {
      auto& item = value[at % value.size()];
      change(choices, item);
    }
  }
}

template <class Owner>
void change_a_field(Choices& choices, Owner& owner) {
  constexpr std::size_t kFields = std::tuple_size_v<std::decay_t<decltype(wire::Table<Owner>::kFields)>>;
  if constexpr (kFields > 0) {
    const std::size_t wanted = choices.below(kFields);
    std::size_t at = 0;
    const auto change_one = [&](const auto& field) {
      if (at++ == wanted) change(choices, owner.*field.member);
    };
    std::apply([&](const auto&... field) { (change_one(field), ...); }, wire::Table<Owner>::kFields);
  }
}

inline void change_a_field(Choices& choices, wire::Message& message) {
  std::visit([&](auto& inner) { change_a_field(choices, inner); }, message);
}

/// The message of this place in the list of kinds, empty.
template <std::size_t... I>
wire::Message empty_message(std::size_t kind, std::index_sequence<I...> /*kinds*/) {
  wire::Message made;
  ((I == kind ? static_cast<void>(made.emplace<I>()) : static_cast<void>(0)), ...);
  return made;
}

}  // namespace motley::fuzz
