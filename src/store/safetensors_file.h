#pragma once
// The two halves of safetensors that checkpoints use as well: the header with its offsets, and a reader that hands out
// the data in the file's order. Internal to store/. One thread at a time.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "motley/result.h"
#include "store/file.h"
#include "store/safetensors.h"

namespace motley::store {

struct HeaderTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, in the data
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<HeaderTensor> tensors;  // by offset; they tile the data
};

std::uint64_t dtype_bytes(DType dtype) noexcept;
/// "F32", "BF16", "BOOL", …; empty for a value outside the enumeration.
std::string_view dtype_word(DType dtype) noexcept;
bool parse_dtype(std::string_view word, DType& dtype) noexcept;

Result<SafetensorsHeader> parse_header(std::string_view json, std::uint64_t data_bytes);

/// What was written, so that it can be told from something else later.
struct FileHash {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const FileHash&) const = default;
};

/// write_safetensors, and the hash of what it wrote.
Result<FileHash> write_safetensors_hashed(const std::filesystem::path& file, const Safetensors& content);

/// Reads a file once, front to back.
class SafetensorsReader {
 public:
  static Result<SafetensorsReader> open(const std::filesystem::path& path);
  [[nodiscard]] const SafetensorsHeader& header() const noexcept { return header_; }
  /// The next bytes of the data. REQUIRES that so many are left.
  Status read(std::span<std::byte> out);
  /// Of all bytes read so far, header included.
  [[nodiscard]] FileHash hash() const noexcept { return hash_; }

 private:
  File file_;
  SafetensorsHeader header_;
  std::uint64_t size_ = 0;
  FileHash hash_;
};

}  // namespace motley::store
