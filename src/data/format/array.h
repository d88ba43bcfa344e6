#pragma once
// What the readers of IDX and npy files yield: a view of elements in little-endian order with a checked shape. The
// bytes belong to whoever handed them to the parser. Pure data.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "motley/layout.h"
#include "motley/result.h"

namespace motley::data {

constexpr std::size_t kRankMax = 8;
constexpr std::uint64_t kArrayBytesMax = std::uint64_t{1} << 44;

struct Array {
  DType dtype = DType::u8;  // u8, boolean, i32, i64, f32 or f64
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

std::uint64_t bytes_of(DType dtype) noexcept;
std::string to_text(DType dtype);
std::string to_text(std::span<const std::uint64_t> shape);

/// Elements times `element_bytes`; nothing beyond kArrayBytesMax.
std::optional<std::uint64_t> checked_bytes(std::span<const std::uint64_t> shape, std::uint64_t element_bytes) noexcept;

/// The error for a file whose contents are not what its format asks for.
Error damaged(const std::string& file, const std::string& expected, const std::string& found);

}  // namespace motley::data
