#include "engine/sum_segment.h"

#include <algorithm>
#include <cstdint>

namespace motley::engine {

void describe(wire::FrameHeader& header, const SumSegment& segment, std::size_t elements) {
  header.total = static_cast<std::uint32_t>(codec::encoded_bytes(header.codec, elements));
  header.offset = static_cast<std::uint32_t>(codec::encoded_bytes(header.codec, segment.first));
  header.length = static_cast<std::uint32_t>(codec::encoded_bytes(header.codec, segment.count));
}

std::optional<SumSegment> segment_of(const wire::FrameHeader& header, std::size_t elements) {
  const std::size_t first = header.offset / codec::encoded_bytes(header.codec, kSegmentElements) * kSegmentElements;
  if (first >= elements) return std::nullopt;
  const SumSegment segment{first, std::min(kSegmentElements, elements - first)};
  wire::FrameHeader right = header;
  describe(right, segment, elements);
  return right == header ? std::optional(segment) : std::nullopt;
}

}  // namespace motley::engine
