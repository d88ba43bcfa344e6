#pragma once
// Fixed-width little-endian integers and floats, byte by byte: the same bytes on every machine.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace motley {

template <class T>
  requires std::is_unsigned_v<T>
void store_le(std::byte* out, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
  requires std::is_unsigned_v<T>
[[nodiscard]] T load_le(const std::byte* in) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | (static_cast<T>(in[i]) << (8 * i)));
  return value;
}

inline std::span<const std::byte> as_bytes(const std::string& text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace motley
