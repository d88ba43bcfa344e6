#pragma once
// How a chunk of a sum of contributions is cut: into stretches of so many elements, each encoded by itself, so that
// whoever has one can decode it, add to it, and encode it again. Pure.

#include <cstddef>
#include <optional>

#include "codec/codec.h"
#include "wire/frame.h"
#include "wire/limits.h"

namespace motley::engine {

/// Of a segment but the last.
inline constexpr std::size_t kSegmentElements = wire::kHandedOnBytesMax / sizeof(float);
static_assert(kSegmentElements % codec::Encoded::kStride == 0, "encoded in segments a chunk is as long as whole");

struct SumSegment {
  std::size_t first = 0, count = 0;  // elements
};

/// Codec, place and length in a header: `total` of the chunk, `offset` and `length` among its encoded segments.
void describe(wire::FrameHeader& header, const SumSegment& segment, std::size_t elements);
/// Which segment of a chunk of so many elements that is; empty: none.
std::optional<SumSegment> segment_of(const wire::FrameHeader& header, std::size_t elements);

}  // namespace motley::engine
