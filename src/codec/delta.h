#pragma once
// What takes one version of the weights to about the next: docs/formats/wire.md has the bytes,
// docs/design/0016-codecs.md the reasons. Whoever holds the first version bit for bit holds the second
// bit for bit afterwards, on every processor. Functions without state; any thread.

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace motley::codec {

struct Kernels;

/// Encodes target - base; `moved` becomes base with that added, as every reader will have it. False where the
/// difference is not finite (int8, int4: or beyond 7 · 2^120): then neither is of use. REQUIRES a codec that is not
/// fp32, all of one length, `body` of encoded_bytes(); nothing overlaps.
[[nodiscard]] bool encode_delta(CodecId codec, std::span<const float> target, std::span<const float> base,
                                std::span<std::byte> body, std::span<float> moved) noexcept;

/// `moved` becomes base with the delta added. False, and nothing is written, for a body of another length, or with a
/// scale or number that no encoder writes. `set`: the instructions to use; null: the fastest. REQUIRES `moved` as long
/// as `base`; nothing overlaps.
[[nodiscard]] bool add_delta(CodecId codec, std::span<const std::byte> body, std::span<const float> base,
                             std::span<float> moved, const Kernels* set = nullptr) noexcept;

/// Most that `moved` may be off, in a block (bf16: at an element) whose largest difference is `magnitude`, apart from
/// the roundings of a subtraction and an addition in fp32.
double delta_error_bound(CodecId codec, double magnitude) noexcept;

}  // namespace motley::codec
