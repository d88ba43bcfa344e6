#include "engine/coordinator_weights.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "wire/limits.h"

namespace motley::engine {

void VersionFrames::set(ChunkId chunk, SharedBytes bytes) {
  MOTLEY_ASSERT(!bytes.empty());
  chunks_[chunk].bytes = std::move(bytes);
  chunks_[chunk].checksums.clear();
}

void VersionFrames::clear() {
  for (ChunkBytes& chunk : chunks_) {
    chunk.bytes = SharedBytes();
    chunk.checksums.clear();
  }
}

std::size_t VersionFrames::segments_of(ChunkId chunk) const noexcept {
  return (chunks_[chunk].bytes.size() + wire::kSegmentBytesMax - 1) / wire::kSegmentBytesMax;
}

wire::Frame VersionFrames::segment(ChunkId chunk, wire::FrameHeader header, std::size_t index, bool local,
                                   bool checksum) {
  ChunkBytes& from = chunks_[chunk];
  MOTLEY_ASSERT(!from.bytes.empty());
  if (local) return wire::seal(header, from.bytes, false);
  const std::size_t offset = index * wire::kSegmentBytesMax;
  SharedBytes body = from.bytes.slice(offset, std::min(wire::kSegmentBytesMax, from.bytes.size() - offset));
  header.offset = static_cast<std::uint32_t>(offset);
  if (checksum) {
    if (from.checksums.empty()) {
      for (std::size_t at = 0; at < from.bytes.size(); at += wire::kSegmentBytesMax) {
        const std::size_t count = std::min(wire::kSegmentBytesMax, from.bytes.size() - at);
        from.checksums.push_back(crc32c(from.bytes.bytes().subspan(at, count)));
      }
    }
    header.body_crc = from.checksums[index];
  }
  return wire::seal(header, std::move(body), false);
}

}  // namespace motley::engine
