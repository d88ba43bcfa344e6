#include "engine/head/bearing.h"

#include <algorithm>

#include "base/count_sketch.h"

namespace motley::engine {
namespace {

constexpr std::size_t kPieces = 64, kElements = 4096;

}  // namespace

ChunkId pointing_chunk(const Layout& layout) noexcept {
  ChunkId found = 0;
  std::size_t most = 0;
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
    const Chunk& each = layout.chunks()[chunk];
    const std::size_t enough = std::min<std::size_t>(each.elements, kElements);
    if (each.kind == ChunkKind::statistics || enough < most) continue;
    most = enough;
    found = chunk;
  }
  return found;
}

modes::Bearing bearing_of(std::uint64_t secret, ChunkId chunk, const codec::Encoded& values) noexcept {
  constexpr std::size_t kStride = codec::Encoded::kStride;
  std::array<double, std::tuple_size_v<modes::Bearing>> sums{};
  std::array<float, kStride> piece{};
  SketchPlaces where{};
  const std::size_t strides = (values.elements() + kStride - 1) / kStride;
  const std::size_t pieces = std::min(strides, kPieces);
  const std::size_t each = pieces == 0 ? 0 : std::min(kStride, kElements / pieces);
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t first = strides * i / pieces * kStride;
    const std::span part = std::span(piece).first(std::min(each, values.elements() - first));
    values.decode(first, part);
    for (std::size_t k = 0; k < part.size(); ++k) {
      if (k % kSketchBlock == 0) where = sketch_places(secret, first + k, chunk);
      sketch(sums, where[k % kSketchBlock], static_cast<double>(part[k]));
    }
  }
  modes::Bearing bearing{};
  std::ranges::transform(sums, bearing.begin(), [](double sum) { return static_cast<float>(sum); });
  return bearing;
}

}  // namespace motley::engine
