#include "data/format/idx.h"

#include <string_view>

#include "base/format.h"

namespace motley::data {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kExtentBytes = 4;
constexpr std::uint8_t kTypeU8 = 0x08;

std::uint64_t load_be32(std::span<const std::byte> in) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kExtentBytes; ++i) value = (value << 8) | std::to_integer<std::uint64_t>(in[i]);
  return value;
}

std::string_view type_name(std::uint8_t type) noexcept {
  switch (type) {
    case 0x09:
      return "i8";
    case 0x0B:
      return "i16";
    case 0x0C:
      return "i32";
    case 0x0D:
      return "f32";
    case 0x0E:
      return "f64";
    default:
      return "unknown";
  }
}

}  // namespace

bool looks_like_idx(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kMagicBytes && bytes[0] == std::byte{0} && bytes[1] == std::byte{0};
}

Result<Array> parse_idx(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < kMagicBytes) {
    return damaged(name, "an IDX file of at least 4 bytes", std::to_string(bytes.size()) + " bytes");
  }
  if (!looks_like_idx(bytes)) {
    return damaged(name, "an IDX file that starts with the bytes 00 00",
                   formatted("%02x %02x", std::to_integer<unsigned>(bytes[0]), std::to_integer<unsigned>(bytes[1])));
  }
  const auto type = std::to_integer<std::uint8_t>(bytes[2]);
  if (type != kTypeU8) {
    return Error{ErrorCode::input,
                 name + ": expected IDX elements of type 0x08 (u8), found type " + std::to_string(type) + " (" +
                     std::string(type_name(type)) + ") at byte 2",
                 "save arrays of other types as .npy"};
  }
  const auto rank = std::to_integer<std::size_t>(bytes[3]);
  if (rank == 0 || rank > kRankMax) {
    return damaged(name, "1 to " + std::to_string(kRankMax) + " dimensions", std::to_string(rank) + " at byte 3");
  }
  const std::size_t header = kMagicBytes + rank * kExtentBytes;
  if (bytes.size() < header) {
    return damaged(name, "a header of " + std::to_string(header) + " bytes", std::to_string(bytes.size()) + " bytes");
  }
  Array array;
  for (std::size_t i = 0; i < rank; ++i) {
    array.shape.push_back(load_be32(bytes.subspan(kMagicBytes + i * kExtentBytes, kExtentBytes)));
  }
  array.bytes = bytes.subspan(header);
  const std::optional<std::uint64_t> wanted = checked_bytes(array.shape, 1);
  if (wanted != array.bytes.size()) {
    return damaged(name,
                   (wanted ? std::to_string(*wanted) : "too many") + " bytes of elements for shape " +
                       to_text(array.shape) + " after a header of " + std::to_string(header),
                   std::to_string(array.bytes.size()));
  }
  return array;
}

}  // namespace motley::data
