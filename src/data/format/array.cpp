#include "data/format/array.h"

namespace motley::data {

std::uint64_t bytes_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
  }
  return 0;
}

std::string to_text(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "bool";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::i32:
      return "i32";
    case DType::f64:
      return "f64";
    case DType::i64:
      return "i64";
  }
  return "unknown";
}

std::string to_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::optional<std::uint64_t> checked_bytes(std::span<const std::uint64_t> shape, std::uint64_t element_bytes) noexcept {
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return 0;
  }
  std::uint64_t total = element_bytes;
  for (const std::uint64_t extent : shape) {
    if (extent > kArrayBytesMax / total) return std::nullopt;
    total *= extent;
  }
  return total;
}

Error damaged(const std::string& file, const std::string& expected, const std::string& found) {
  return {ErrorCode::input, file + ": expected " + expected + ", found " + found,
          "the file is damaged, incomplete or of another format: fetch or write it again"};
}

}  // namespace motley::data
