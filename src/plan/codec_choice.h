#pragma once
// In how many bits numbers travel between the coordinator and one worker, where the user leaves that open. Pure.

#include <cstdint>

#include "codec/codec.h"
#include "plan/codec_cost.h"

namespace motley::plan {

/// The codec with which a step is expected to end first, of fp32, bf16, int8, int4: by what the worker waits for the
/// wire beyond computing, which goes with the bytes, and by what the processors of both ends have to do with them. Of
/// those between which steps of this run could not tell, because they vary more than that, the exactest. A codec that
/// left out more than it may (the residual of error feedback, ‖e‖ / ‖g‖) is not taken again.
class CodecChoice {
 public:
  /// `follows`: the part of the bytes that change with the codec (one half: only one direction does).
  explicit CodecChoice(double follows = 1) noexcept : follows_(follows) {}

  [[nodiscard]] codec::CodecId codec() const noexcept { return codec_; }

  /// Of the worker's newest pass: seconds of computing, and those beyond that went by on the wire. `processors`: see
  /// held_up(). Returns what the time on the wire will be multiplied by, if the codec has changed; else 1.
  double pass(double compute_seconds, double exposed_seconds, const ByCodec& processors = {}) noexcept;
  /// A whole version in fp32 took so long to reach it, before any pass. Returns the part of that which it takes from
  /// now on.
  double version(double seconds) noexcept;
  /// What the codec left of the newest contribution: the norm of that over the contribution's. Returns as pass() does.
  double residual(double ratio) noexcept;

 private:
  /// Mean and variance of the newest passes; older ones fade.
  struct Recent {
    double mean = 0, variance = 0, newest = 0;  // the last: of a handful
    std::uint32_t records = 0;
    void add(double value) noexcept;
    /// The most by which the mean is off, in 99 of 100; infinite before there are two.
    [[nodiscard]] double doubt() const noexcept;
    /// Likewise, of as many as are remembered at the most.
    [[nodiscard]] double least_doubt() const noexcept;
    /// The mean, or that of the newest where it became another one.
    [[nodiscard]] double now() const noexcept;
  };
  [[nodiscard]] double size(codec::CodecId codec) const noexcept;
  [[nodiscard]] double exposed(codec::CodecId codec) const noexcept;
  void learn_constant() noexcept;
  double move_to(codec::CodecId codec) noexcept;

  double follows_;
  codec::CodecId codec_ = codec::CodecId::fp32;
  codec::CodecId least_ = codec::CodecId::int4;  // no fewer bits than these
  bool cold_ = true;                             // no pass yet
  Recent exposed_, step_;                        // with this codec
  double constant_ = 0;                          // of what is exposed: what does not go with the bytes
  double size_before_ = 0, exposed_before_ = 0;  // with the codec before it; 0: compared long enough
};

}  // namespace motley::plan
