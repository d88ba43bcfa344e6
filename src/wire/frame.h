#pragma once
// The frame header: 80 bytes, little-endian, written and read field by field. docs/formats/wire.md is the
// specification.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/codec.h"
#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::wire {

inline constexpr std::uint32_t kMagic = 0x594C544D;  // "MTLY"
inline constexpr std::uint8_t kProtocolVersion = 1;
inline constexpr std::size_t kHeaderBytes = 80;

enum class FrameType : std::uint8_t {
  control = 1,
  weights = 2,
  gradient = 3,
  statistic = 4,
  ack = 5,
  block = 6,  // of a file that is offered, or of a manifest
  // 7 checkpoint, 8 round, 9 activation: reserved
  blob = 10,  // the a script's files and what its runs left, to who asks
};

using codec::CodecId;

inline constexpr std::uint32_t kOrdered = 1U << 31;  // numbers have 31 bits: the first is 0, and they start again

struct FrameHeader {
  FrameType type = FrameType::control;
  std::uint16_t flags = 0;
  std::uint64_t run = 0;
  std::uint64_t fence = 0;    // incarnation:32 | session:32
  std::uint64_t pass = 0;     // kind:8 | job:16 | number:40
  std::uint64_t subject = 0;  // lease of a gradient; hash prefix of a block or blob
  std::uint64_t version = 0;  // of the weights
  std::uint32_t chunk = 0;
  std::uint32_t offset = 0;  // of this segment in the chunk (or block, blob), bytes
  std::uint32_t length = 0;  // of the body, bytes
  std::uint32_t total = 0;   // of the whole chunk (or block, blob), bytes
  CodecId codec = CodecId::fp32;
  std::uint8_t shard = 0;
  std::uint32_t order = 0;     // of weights on several connections: kOrdered | number; 0: none
  std::uint32_t body_crc = 0;  // CRC-32C of the body
  bool operator==(const FrameHeader&) const = default;
};

struct Frame {
  FrameHeader header;
  SharedBytes body;
};

/// True for the types whose body is a piece of something longer: weights, gradient, statistic, block, blob.
bool is_segmented(FrameType type) noexcept;

/// The longest body a frame of this type may have on the wire (limits.h).
std::size_t body_bytes_max(FrameType type) noexcept;

/// REQUIRES header.length and header.body_crc are filled in (see seal()).
std::array<std::byte, kHeaderBytes> encode_header(const FrameHeader& header) noexcept;

/// Checks, in this order: magic, header checksum, protocol version (ErrorCode::mismatch, both versions named), known
/// type (ErrorCode::protocol), length against the smaller of `limit` and body_bytes_max(type), reserved fields zero,
/// order of weights only, known codec, offset + length <= total for segmented types.
Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes, std::size_t limit);

/// Fills length (and total when zero) from the body, and body_crc when `checksum` is set (in-process frames skip it).
Frame seal(FrameHeader header, SharedBytes body, bool checksum = true);

/// ErrorCode::protocol unless the body matches length and body_crc.
Status verify_body(const FrameHeader& header, std::span<const std::byte> body);

}  // namespace motley::wire
