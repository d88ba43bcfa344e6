#pragma once
// In how many bits numbers travel between the coordinator and one worker, where the user leaves that open. Pure.

#include <cstdint>

#include "codec/codec.h"

namespace motley::plan {

/// The exactest codec with which the link does not hold up the steps: fp32, then bf16, int8, int4. Fewer bits are taken
/// where more than a tenth of a pass is spent on the wire beyond computing, as few as bring that below a tenth; more
/// bits where they would cost less than a twentieth for many passes. A codec that saved no time, or that left out more
/// than it may (the residual of error feedback, ‖e‖ / ‖g‖), is not taken again.
class CodecChoice {
 public:
  /// `follows`: the part of the bytes that change with the codec (one half: only one direction does).
  explicit CodecChoice(double follows = 1) noexcept : follows_(follows) {}

  [[nodiscard]] codec::CodecId codec() const noexcept { return codec_; }

  /// Of a worker's usual pass: seconds of computing, and those beyond that went by on the wire. Returns what the latter
  /// will be multiplied by, if the codec has changed; else 1.
  double pass(double compute_seconds, double exposed_seconds) noexcept;
  /// A whole version in fp32 took so long to reach it, before any pass. Returns the part of that which it takes from
  /// now on.
  double version(double seconds) noexcept;
  /// What the codec left of the newest contribution: the norm of that over the contribution's. Returns as pass() does.
  double residual(double ratio) noexcept;

 private:
  [[nodiscard]] double size(codec::CodecId codec) const noexcept;
  double move_to(codec::CodecId codec) noexcept;

  double follows_;
  codec::CodecId codec_ = codec::CodecId::fp32;
  codec::CodecId least_ = codec::CodecId::int4;  // no fewer bits than these
  codec::CodecId before_ = codec::CodecId::fp32;
  double exposed_before_ = 0;  // with that, if fewer bits are on trial
  std::uint32_t passes_ = 0;   // with this codec
  std::uint32_t slow_ = 0;     // in a row in which the link held up the steps
  std::uint32_t ample_ = 0;    // in a row in which more bits would have cost little
};

}  // namespace motley::plan
