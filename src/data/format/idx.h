#pragma once
// The IDX format of MNIST: a four-byte magic (0, 0, type, rank), big-endian extents, elements. Type u8 only. Pure.

#include <span>
#include <string>

#include "data/format/array.h"

namespace motley::data {

[[nodiscard]] bool looks_like_idx(std::span<const std::byte> bytes) noexcept;

/// `name` is for messages. The result views `bytes`.
Result<Array> parse_idx(std::span<const std::byte> bytes, const std::string& name);

}  // namespace motley::data
