#pragma once
// What blocks and manifests are known by. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/little_endian.h"

namespace motley::blocks {

using Hash = std::array<std::uint8_t, 32>;  // SHA-256
using HashOf = std::function<Hash(std::span<const std::byte>)>;

/// As frames name it.
inline std::uint64_t prefix_of(const Hash& hash) noexcept {
  return load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(hash.data()));
}

}  // namespace motley::blocks
