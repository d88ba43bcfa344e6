#pragma once
// What numbers on their way keep processors from: encoding and decoding, encryption and the kernel's part. Pure.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "codec/codec.h"

namespace motley::plan {

/// fp32, bf16, int8, int4.
using ByCodec = std::array<double, 4>;

constexpr double of(const ByCodec& each, codec::CodecId codec) noexcept {
  return each[static_cast<std::size_t>(codec)];
}

/// Of one machine, in seconds for which its computing stands still: processor time, as far as no processor is idle
/// meanwhile. Zero where nobody measured.
struct EndCost {
  double sent = 0, received = 0;                                   // a byte on the wire
  ByCodec encode{}, decode_add{}, encode_delta{}, decode_delta{};  // a byte of fp32

  EndCost& operator*=(double factor) noexcept;
  bool operator==(const EndCost&) const = default;
};

/// What a worker tells of itself: sent, received, then encoding and adding deltas by codec but fp32.
std::vector<double> told(const EndCost& worker);
/// Empty where that is not what told() gives, or slower than any machine is.
std::optional<EndCost> heard(std::span<const double> numbers) noexcept;

/// Of so many processor seconds the part by which computing on `threads` threads ends later, with so many processors at
/// hand (a quota is a fraction of one). No threads: something else than a processor computes.
double computing_held_up(double processors, double threads) noexcept;

/// One of the two ends, and the part of the step's work that is computed there.
struct PassEnd {
  EndCost cost;
  double part = 0;
};
/// Which numbers' codec is open.
struct OpenCodecs {
  bool gradients = false, weights = false;
};

/// Seconds by which the numbers of a pass make a step longer, by codec: what one machine does not compute meanwhile all
/// share, so that each end counts by its part. `bytes`: of a contribution on the wire.
ByCodec held_up(const PassEnd& worker, const PassEnd& head, const ByCodec& bytes, OpenCodecs open) noexcept;

}  // namespace motley::plan
