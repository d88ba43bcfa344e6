#pragma once
// safetensors, to the specification: 8-byte little-endian header length, JSON header, data without holes.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"

namespace motley::store {

inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100'000'000;

struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<SharedBytes> parts;  // its bytes, in order; one part when read from a file
};

struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<TensorView> tensors;
};

/// Header padded so that data start 64-byte aligned. Writes to `file` and fsyncs it; the caller renames. Errors:
/// disk_full, io.
Status write_safetensors(const std::filesystem::path& file, const Safetensors& content);
/// Every offset, size and dtype is checked against the file before use.
Result<Safetensors> read_safetensors(const std::filesystem::path& file);
/// The header alone, as read_safetensors parses it, from `bytes` with `data_bytes` behind them: the fuzzed part. Parts
/// stay empty.
Result<Safetensors> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes);

}  // namespace motley::store
