#include "wire/frame.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/format.h"
#include "base/little_endian.h"
#include "wire/limits.h"

namespace motley::wire {
namespace {

// Where each field lies. docs/formats/wire.md has the same table.
constexpr std::size_t kAtMagic = 0;
constexpr std::size_t kAtProtocol = 4;
constexpr std::size_t kAtType = 5;
constexpr std::size_t kAtFlags = 6;
constexpr std::size_t kAtRun = 8;
constexpr std::size_t kAtFence = 16;
constexpr std::size_t kAtPass = 24;
constexpr std::size_t kAtSubject = 32;
constexpr std::size_t kAtVersion = 40;
constexpr std::size_t kAtChunk = 48;
constexpr std::size_t kAtOffset = 52;
constexpr std::size_t kAtLength = 56;
constexpr std::size_t kAtTotal = 60;
constexpr std::size_t kAtCodec = 64;
constexpr std::size_t kAtShard = 65;
constexpr std::size_t kAtReserved = 66;
constexpr std::size_t kAtOrder = 68;
constexpr std::size_t kAtBodyCrc = 72;
constexpr std::size_t kAtHeaderCrc = 76;
static_assert(kAtHeaderCrc + sizeof(std::uint32_t) == kHeaderBytes);
static_assert(kBodyBytesMax <= std::numeric_limits<std::uint32_t>::max());
static_assert(kControlBytesMax <= std::numeric_limits<std::uint32_t>::max());

std::string hex32(std::uint32_t value) { return formatted("%08X", value); }

Error protocol_error(std::string message, std::string hint = "the connection is damaged or the other side has a bug") {
  return {ErrorCode::protocol, std::move(message), std::move(hint)};
}

// Two mistakes are common enough to be named: a browser on our port, and TLS against plain text.
Error wrong_magic(std::span<const std::byte, kHeaderBytes> bytes) {
  const auto magic = load_le<std::uint32_t>(bytes.data() + kAtMagic);
  std::string message = "frame: expected magic " + hex32(kMagic) + " (\"MTLY\"), found " + hex32(magic);
  if (bytes[0] == std::byte{0x16} && bytes[1] == std::byte{0x03}) {
    return protocol_error(message + ", which is a TLS handshake", "use --plaintext on both sides or on neither");
  }
  const std::string start(reinterpret_cast<const char*>(bytes.data()), 5);
  if (start.starts_with("GET ") || start.starts_with("POST ") || start.starts_with("HEAD ")) {
    return protocol_error(message + ", which is an HTTP request",
                          "this port speaks Motley's own protocol: use `motley join TOKEN`");
  }
  return protocol_error(message, "another program is talking to this port");
}

bool known_type(std::uint8_t type) noexcept {
  switch (static_cast<FrameType>(type)) {
    case FrameType::control:
    case FrameType::weights:
    case FrameType::gradient:
    case FrameType::statistic:
    case FrameType::ack:
    case FrameType::block:
    case FrameType::blob:
      return true;
  }
  return false;
}

Status check_envelope(std::span<const std::byte, kHeaderBytes> bytes) {
  if (load_le<std::uint32_t>(bytes.data() + kAtMagic) != kMagic) return wrong_magic(bytes);
  const auto declared = load_le<std::uint32_t>(bytes.data() + kAtHeaderCrc);
  const std::uint32_t computed = crc32c(bytes.first(kAtHeaderCrc));
  if (declared != computed) {
    return protocol_error("frame: header checksum is " + hex32(declared) + ", expected " + hex32(computed));
  }
  const auto protocol = std::to_integer<std::uint8_t>(bytes[kAtProtocol]);
  if (protocol != kProtocolVersion) {
    return Error{ErrorCode::mismatch,
                 "frame: expected protocol version " + std::to_string(kProtocolVersion) +
                     " (spoken here), found version " + std::to_string(protocol) + " (spoken by the other side)",
                 "install the same version of motley on both machines"};
  }
  return {};
}

FrameHeader load_fields(const std::byte* in) noexcept {
  FrameHeader header;
  header.type = static_cast<FrameType>(in[kAtType]);
  header.flags = load_le<std::uint16_t>(in + kAtFlags);
  header.run = load_le<std::uint64_t>(in + kAtRun);
  header.fence = load_le<std::uint64_t>(in + kAtFence);
  header.pass = load_le<std::uint64_t>(in + kAtPass);
  header.subject = load_le<std::uint64_t>(in + kAtSubject);
  header.version = load_le<std::uint64_t>(in + kAtVersion);
  header.chunk = load_le<std::uint32_t>(in + kAtChunk);
  header.offset = load_le<std::uint32_t>(in + kAtOffset);
  header.length = load_le<std::uint32_t>(in + kAtLength);
  header.total = load_le<std::uint32_t>(in + kAtTotal);
  header.codec = static_cast<CodecId>(in[kAtCodec]);
  header.shard = std::to_integer<std::uint8_t>(in[kAtShard]);
  header.order = load_le<std::uint32_t>(in + kAtOrder);
  header.body_crc = load_le<std::uint32_t>(in + kAtBodyCrc);
  return header;
}

}  // namespace

bool is_segmented(FrameType type) noexcept {
  return type == FrameType::weights || type == FrameType::gradient || type == FrameType::statistic ||
         type == FrameType::block || type == FrameType::blob;
}

std::size_t body_bytes_max(FrameType type) noexcept {
  return type == FrameType::control ? kControlBytesMax : kBodyBytesMax;
}

std::array<std::byte, kHeaderBytes> encode_header(const FrameHeader& header) noexcept {
  MOTLEY_ASSERT(known_type(static_cast<std::uint8_t>(header.type)));
  MOTLEY_ASSERT(!is_segmented(header.type) || std::uint64_t{header.offset} + header.length <= header.total);
  std::array<std::byte, kHeaderBytes> out{};
  std::byte* to = out.data();
  store_le<std::uint32_t>(to + kAtMagic, kMagic);
  store_le<std::uint8_t>(to + kAtProtocol, kProtocolVersion);
  store_le<std::uint8_t>(to + kAtType, static_cast<std::uint8_t>(header.type));
  store_le<std::uint16_t>(to + kAtFlags, header.flags);
  store_le<std::uint64_t>(to + kAtRun, header.run);
  store_le<std::uint64_t>(to + kAtFence, header.fence);
  store_le<std::uint64_t>(to + kAtPass, header.pass);
  store_le<std::uint64_t>(to + kAtSubject, header.subject);
  store_le<std::uint64_t>(to + kAtVersion, header.version);
  store_le<std::uint32_t>(to + kAtChunk, header.chunk);
  store_le<std::uint32_t>(to + kAtOffset, header.offset);
  store_le<std::uint32_t>(to + kAtLength, header.length);
  store_le<std::uint32_t>(to + kAtTotal, header.total);
  store_le<std::uint8_t>(to + kAtCodec, static_cast<std::uint8_t>(header.codec));
  store_le<std::uint8_t>(to + kAtShard, header.shard);
  store_le<std::uint32_t>(to + kAtOrder, header.order);
  store_le<std::uint32_t>(to + kAtBodyCrc, header.body_crc);
  store_le<std::uint32_t>(to + kAtHeaderCrc, crc32c(std::span(out).first(kAtHeaderCrc)));
  return out;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes, std::size_t limit) {
  if (Status envelope = check_envelope(bytes); !envelope) return std::move(envelope).error();
  const auto type = std::to_integer<std::uint8_t>(bytes[kAtType]);
  if (!known_type(type)) {
    return protocol_error("frame: expected type 1 to 6 or 10, found " + std::to_string(type),
                          "the other side may run a newer version of motley: install the same on both machines");
  }
  const FrameHeader header = load_fields(bytes.data());
  const std::size_t most = std::min(limit, body_bytes_max(header.type));
  if (header.length > most) {
    return protocol_error("frame: expected a body of at most " + std::to_string(most) + " bytes, found " +
                          std::to_string(header.length));
  }
  if (load_le<std::uint16_t>(bytes.data() + kAtReserved) != 0) {
    return protocol_error("frame: expected the reserved bytes 66 and 67 to be zero, found other values");
  }
  if (header.order != 0 && header.type != FrameType::weights) {
    return protocol_error("frame: expected an order of weights only, found " + std::to_string(header.order) +
                          " in a frame of type " + std::to_string(type));
  }
  if (header.codec > codec::kLastCodec) {
    return protocol_error("frame: expected codec 0 to 3 (fp32, bf16, int8, int4), found " +
                              std::to_string(static_cast<unsigned>(header.codec)),
                          "install the same version of motley on both machines");
  }
  if (is_segmented(header.type) && std::uint64_t{header.offset} + header.length > header.total) {
    return protocol_error("frame: expected a segment inside " + std::to_string(header.total) + " bytes, found " +
                          std::to_string(header.length) + " bytes at offset " + std::to_string(header.offset));
  }
  return header;
}

Frame seal(FrameHeader header, SharedBytes body, bool checksum) {
  MOTLEY_ASSERT(body.size() <= std::numeric_limits<std::uint32_t>::max());
  header.length = static_cast<std::uint32_t>(body.size());
  if (header.total == 0) header.total = header.length;
  if (checksum) header.body_crc = crc32c(body.bytes());
  MOTLEY_ASSERT(!is_segmented(header.type) || std::uint64_t{header.offset} + header.length <= header.total);
  return {header, std::move(body)};
}

Status verify_body(const FrameHeader& header, std::span<const std::byte> body) {
  if (body.size() != header.length) {
    return protocol_error("frame: expected a body of " + std::to_string(header.length) + " bytes, found " +
                          std::to_string(body.size()));
  }
  const std::uint32_t computed = crc32c(body);
  if (computed != header.body_crc) {
    return protocol_error("frame: body checksum is " + hex32(computed) + ", expected " + hex32(header.body_crc));
  }
  return {};
}

}  // namespace motley::wire
