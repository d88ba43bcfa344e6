#pragma once
// Cuts a stream of bytes into frames: limits first, then memory, then the checksum. Private to tcp/; no socket in here.
// Not thread-safe.

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "motley/bytes.h"
#include "motley/result.h"
#include "wire/frame.h"

namespace motley::transport {

class FrameReader {
 public:
  explicit FrameReader(BufferPool& pool) : pool_(pool) {}

  /// Until lifted: control frames only, none longer than `control_bytes_max`.
  void restrict(std::size_t control_bytes_max) noexcept;
  void lift_restriction() noexcept;
  /// Where no network is in between, or TLS tells what was damaged on the way.
  void trust_bodies() noexcept { bodies_trusted_ = true; }

  /// Consumes from the front of `bytes` up to the end of one frame at most; take() then has it.
  Status feed(std::span<const std::byte>& bytes);
  /// The part of the current body that is still missing, to be read into directly; empty between bodies.
  [[nodiscard]] std::span<std::byte> gap() const noexcept;
  /// `count` bytes of gap() were filled.
  Status filled(std::size_t count);
  [[nodiscard]] std::optional<wire::Frame> take();
  /// Nothing of a frame has come yet.
  [[nodiscard]] bool between_frames() const noexcept;

 private:
  Status header_complete();
  Status body_complete();

  BufferPool& pool_;
  std::optional<std::size_t> restricted_bytes_max_;
  bool bodies_trusted_ = false;
  std::array<std::byte, wire::kHeaderBytes> header_bytes_{};
  std::size_t header_have_ = 0;
  wire::FrameHeader header_;
  MutableBytes body_;
  std::size_t body_have_ = 0;
  bool in_body_ = false;
  std::optional<wire::Frame> frame_;
};

}  // namespace motley::transport
