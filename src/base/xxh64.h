#pragma once
// XXH64: a 64-bit hash of bytes, equal on every machine. For telling things apart, not for secrets. Pure.

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept;

}  // namespace motley
