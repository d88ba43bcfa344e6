#include "transport/tcp/frame_reader.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "wire/limits.h"

namespace motley::transport {

void FrameReader::restrict(std::size_t control_bytes_max) noexcept { restricted_bytes_max_ = control_bytes_max; }
void FrameReader::lift_restriction() noexcept { restricted_bytes_max_.reset(); }

Status FrameReader::feed(std::span<const std::byte>& bytes) {
  MOTLEY_ASSERT(!frame_);
  if (!in_body_) {
    const std::size_t count = std::min(bytes.size(), wire::kHeaderBytes - header_have_);
    std::memcpy(header_bytes_.data() + header_have_, bytes.data(), count);
    bytes = bytes.subspan(count);
    header_have_ += count;
    if (header_have_ < wire::kHeaderBytes) return {};
    if (Status status = header_complete(); !status) return status;
  }
  const std::span<std::byte> missing = gap();
  const std::size_t count = std::min(bytes.size(), missing.size());
  if (count > 0) std::memcpy(missing.data(), bytes.data(), count);
  bytes = bytes.subspan(count);
  return filled(count);
}

std::span<std::byte> FrameReader::gap() const noexcept {
  return in_body_ ? body_.bytes().subspan(body_have_) : std::span<std::byte>();
}

Status FrameReader::filled(std::size_t count) {
  MOTLEY_ASSERT(in_body_);
  body_have_ += count;
  MOTLEY_ASSERT(body_have_ <= header_.length);
  return body_have_ == header_.length ? body_complete() : Status();
}

std::optional<wire::Frame> FrameReader::take() { return std::exchange(frame_, std::nullopt); }

bool FrameReader::between_frames() const noexcept { return header_have_ == 0 && !in_body_; }

Status FrameReader::header_complete() {
  Result<wire::FrameHeader> decoded = wire::decode_header(header_bytes_, wire::kControlBytesMax);
  if (!decoded) return std::move(decoded).error();
  header_ = *decoded;
  const bool control = header_.type == wire::FrameType::control;
  if (restricted_bytes_max_ && !control) {
    return Error{ErrorCode::protocol,
                 "expected a control frame before the other side has proven itself, found a frame of type " +
                     std::to_string(static_cast<unsigned>(header_.type)),
                 ""};
  }
  const std::size_t bytes_max = control ? restricted_bytes_max_.value_or(wire::kControlBytesMax) : wire::kBodyBytesMax;
  if (header_.length > bytes_max) {
    return Error{restricted_bytes_max_ ? ErrorCode::refused : ErrorCode::protocol,
                 "expected a frame of at most " + std::to_string(bytes_max) + " bytes, found one of " +
                     std::to_string(header_.length),
                 ""};
  }
  in_body_ = true;
  body_have_ = 0;
  if (header_.length > 0) body_ = pool_.take(header_.length);
  return {};
}

Status FrameReader::body_complete() {
  in_body_ = false;
  header_have_ = 0;
  SharedBytes body;
  if (header_.length > 0) body = std::move(body_).seal();
  body_ = MutableBytes();
  if (!bodies_trusted_) {
    if (Status status = wire::verify_body(header_, body.bytes()); !status) return status;
  }
  frame_ = wire::Frame{header_, std::move(body)};
  return {};
}

}  // namespace motley::transport
