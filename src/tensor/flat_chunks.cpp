#include "tensor/flat_chunks.h"

#include <algorithm>

#include "base/assert.h"

namespace motley {

void put_chunks(const Layout& layout, std::span<const SharedBytes> chunks, std::span<float> flat) {
  MOTLEY_ASSERT(chunks.size() == layout.chunks().size() && flat.size() == layout.flat_elements());
  for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk) {
    const Chunk& place = layout.chunks()[chunk];
    const std::span<float> to = flat.subspan(place.offset, place.elements);
    if (chunks[chunk].empty()) {
      std::ranges::fill(to, 0.0F);
      continue;
    }
    MOTLEY_ASSERT(chunks[chunk].size() == to.size_bytes());
    std::ranges::copy(chunks[chunk].bytes(), std::as_writable_bytes(to).begin());
  }
}

std::vector<SharedBytes> copy_chunks(const Layout& layout, std::span<const float> flat, bool statistics) {
  MOTLEY_ASSERT(flat.size() == layout.flat_elements());
  std::vector<SharedBytes> chunks;
  chunks.reserve(layout.chunks().size());
  for (const Chunk& place : layout.chunks()) {
    const bool has = statistics || place.kind != ChunkKind::statistics;
    const std::span<const std::byte> from = std::as_bytes(flat.subspan(place.offset, place.elements));
    chunks.push_back(has ? SharedBytes::copy_of(from) : SharedBytes());
  }
  return chunks;
}

}  // namespace motley
