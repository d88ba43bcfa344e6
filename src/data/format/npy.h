#pragma once
// The .npy format of NumPy, versions 1 to 3: little-endian f4, f8, i4, i8, u1 and bool in C order. Pure.

#include <span>
#include <string>

#include "data/format/array.h"

namespace motley::data {

[[nodiscard]] bool looks_like_npy(std::span<const std::byte> bytes) noexcept;

/// `name` is for messages. The result views `bytes`. Other types and orders are refused by name.
Result<Array> parse_npy(std::span<const std::byte> bytes, const std::string& name);

}  // namespace motley::data
