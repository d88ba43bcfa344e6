#include "data/format/packed.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "base/little_endian.h"

namespace motley::data {
namespace {

constexpr std::string_view kPackedMagic{"\x89MOTLEY\n",
                                        8};  // a byte beyond ASCII and a line end show transfers as text
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 128;
constexpr std::size_t kHeaderCrcAt = 124;
constexpr std::uint64_t kSectionAlign = 64;
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 40;

struct PackedHeader {
  std::uint8_t dtype, target_kind, rank, reserved;
  std::uint32_t target_elements;
  std::uint64_t count, classes;
  std::vector<std::uint64_t> shape;
  std::uint32_t samples_crc, targets_crc;
};

struct Extents {
  std::uint64_t samples_bytes, targets_at, targets_bytes;
};

// zlib counts in 32 bits; crc32_z takes a size_t.
std::uint32_t crc32_of(std::span<const std::byte> bytes) noexcept {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Result<PackedHeader> read_header(std::span<const std::byte> bytes, const std::string& name) {
  const auto size = [&] { return std::to_string(bytes.size()) + " bytes"; };
  const std::size_t seen = std::min(bytes.size(), kPackedMagic.size());
  const bool magic = std::equal(kPackedMagic.begin(), kPackedMagic.begin() + static_cast<std::ptrdiff_t>(seen),
                                bytes.begin(), [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
  if (!magic) {
    return Error{ErrorCode::input, name + ": expected a packed data set, found a file that does not start like one",
                 "write it with tools/pack.py; IDX and .npy files are named in pairs: SAMPLES+TARGETS"};
  }
  if (bytes.size() < kHeaderBytes) return damaged(name, "a packed data set with a header of 128 bytes", size());
  const std::uint32_t version = load_le<std::uint32_t>(&bytes[8]);
  if (version != kVersion) {
    return Error{ErrorCode::input,
                 name + ": expected version 1 of the packed format, found version " + std::to_string(version),
                 "write it again with the tools/pack.py of this version"};
  }
  if (load_le<std::uint32_t>(&bytes[kHeaderCrcAt]) != crc32_of(bytes.first(kHeaderCrcAt))) {
    return damaged(name, "a header that matches its checksum at byte 124", "another one");
  }
  PackedHeader header{std::to_integer<std::uint8_t>(bytes[12]), std::to_integer<std::uint8_t>(bytes[13]),
                      std::to_integer<std::uint8_t>(bytes[14]), std::to_integer<std::uint8_t>(bytes[15]),
                      load_le<std::uint32_t>(&bytes[16]),       load_le<std::uint64_t>(&bytes[24]),
                      load_le<std::uint64_t>(&bytes[32]),       {},
                      load_le<std::uint32_t>(&bytes[104]),      load_le<std::uint32_t>(&bytes[108])};
  if (header.rank == 0 || header.rank > kRankMax) {
    return damaged(name, "1 to 8 dimensions at byte 14", std::to_string(header.rank));
  }
  for (std::size_t i = 0; i < header.rank; ++i) header.shape.push_back(load_le<std::uint64_t>(&bytes[40 + 8 * i]));
  return header;
}

Result<Extents> check(const PackedHeader& header, std::uint64_t file_bytes, const std::string& name) {
  const bool pixels = header.dtype == static_cast<std::uint8_t>(DType::u8);
  if (!pixels && header.dtype != static_cast<std::uint8_t>(DType::f32)) {
    return damaged(name, "sample type 1 (f32) or 7 (u8) at byte 12", std::to_string(header.dtype));
  }
  if (header.target_kind > 1) {
    return damaged(name, "target kind 0 (classes) or 1 (values) at byte 13", std::to_string(header.target_kind));
  }
  if (header.target_elements == 0 || (header.target_kind == 0 && header.target_elements != 1)) {
    return damaged(name, "1 target element for classes, at least 1 for values, at byte 16",
                   std::to_string(header.target_elements));
  }
  if (header.count == 0 || header.count > kCountMax) {
    return damaged(name, "1 to 2^40 samples at byte 24", std::to_string(header.count));
  }
  std::vector<std::uint64_t> whole = header.shape;
  whole.push_back(header.count);
  const std::optional<std::uint64_t> samples = checked_bytes(whole, pixels ? 1 : 4);
  const std::uint64_t target_bytes = header.target_kind == 0 ? 8 : 4;
  const std::optional<std::uint64_t> targets =
      checked_bytes(std::array{header.count, std::uint64_t{header.target_elements}}, target_bytes);
  if (!samples || *samples == 0 || !targets) {
    return damaged(name, "a sample shape of at least one element and at most 2^44 bytes in all",
                   to_text(header.shape) + " for " + std::to_string(header.count) + " samples");
  }
  const std::uint64_t targets_at = (kHeaderBytes + *samples + kSectionAlign - 1) / kSectionAlign * kSectionAlign;
  if (file_bytes != targets_at + *targets) {
    return damaged(name,
                   std::to_string(targets_at + *targets) + " bytes for " + std::to_string(header.count) +
                       " samples of shape " + to_text(header.shape),
                   std::to_string(file_bytes));
  }
  return Extents{*samples, targets_at, *targets};
}

Status read_targets(std::span<const std::byte> bytes, const PackedHeader& header, Parts& parts,
                    const std::string& name) {
  if (parts.target_kind == TargetKind::values) {
    parts.values.resize(bytes.size() / 4);
    for (std::size_t i = 0; i < parts.values.size(); ++i) {
      parts.values[i] = std::bit_cast<float>(load_le<std::uint32_t>(&bytes[4 * i]));
    }
    return {};
  }
  parts.classes.resize(parts.size);
  for (std::size_t i = 0; i < parts.classes.size(); ++i) {
    parts.classes[i] = static_cast<std::int64_t>(load_le<std::uint64_t>(&bytes[8 * i]));
  }
  if (const std::string complaint = complain_about_classes(parts.classes); !complaint.empty()) {
    return damaged(name, "class numbers from 0 to " + std::to_string(kClassesMax - 1), complaint);
  }
  const auto largest = *std::max_element(parts.classes.begin(), parts.classes.end());
  if (header.classes != static_cast<std::uint64_t>(largest) + 1) {
    return damaged(name, std::to_string(largest + 1) + " classes at byte 32", std::to_string(header.classes));
  }
  return {};
}

}  // namespace

Result<Parts> parse_packed(const SharedBytes& bytes, const std::string& name) {
  const Result<PackedHeader> header = read_header(bytes.bytes(), name);
  if (!header) return header.error();
  const Result<Extents> extents = check(*header, bytes.size(), name);
  if (!extents) return extents.error();
  const std::span<const std::byte> targets = bytes.bytes().subspan(extents->targets_at, extents->targets_bytes);
  Parts parts;
  parts.size = header->count;
  parts.sample_dtype = static_cast<DType>(header->dtype);
  parts.sample_shape.assign(header->shape.begin(), header->shape.end());
  parts.samples = bytes.slice(kHeaderBytes, extents->samples_bytes);
  parts.target_kind = static_cast<TargetKind>(header->target_kind);
  parts.target_elements = header->target_elements;
  if (crc32_of(parts.samples.bytes()) != header->samples_crc) {
    return damaged(name, "samples that match their checksum at byte 104", "others");
  }
  if (crc32_of(targets) != header->targets_crc) {
    return damaged(name, "targets that match their checksum at byte 108", "others");
  }
  if (Status status = read_targets(targets, *header, parts, name); !status) return std::move(status).error();
  return parts;
}

Result<Parts> read_packed(const Source& source) {
  const Result<SharedBytes> bytes = source.view();
  if (!bytes) return bytes.error();
  return parse_packed(*bytes, source.name());
}

}  // namespace motley::data
