// The header of a safetensors file: the first eight bytes say how many bytes of data follow it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/little_endian.h"
#include "store/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) return 0;
  const auto data_bytes = motley::load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(data));
  const std::string_view json(reinterpret_cast<const char*>(data) + 8, size - 8);
  const auto content = motley::store::parse_safetensors_header(json, data_bytes);
  if (!content) {
    MOTLEY_ASSERT(!content.error().message.empty());
    return 0;
  }
  for (const auto& tensor : content->tensors) {
    MOTLEY_ASSERT(std::all_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t n) { return n >= 0; }));
  }
  return 0;
}
