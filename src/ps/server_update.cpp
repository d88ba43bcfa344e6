#include "base/assert.h"
#include "ps/server_impl.h"

namespace motley::ps {

std::vector<Segment> segments_of(const Layout& layout, ChunkId chunk) {
  const Chunk& piece = layout.chunks()[chunk];
  const auto [first, last] = layout.placements_of(chunk);
  std::vector<Segment> segments;
  for (std::size_t i = first; i < last; ++i) {
    const Placement& tensor = layout.placements()[i];
    const LayoutEntry& entry = layout.entries()[tensor.entry];
    const std::uint64_t begin = std::max(tensor.offset, piece.offset);
    const std::uint64_t end = std::min(tensor.offset + tensor.elements, piece.offset + piece.elements);
    MOTLEY_ASSERT(begin < end);
    segments.push_back({static_cast<std::uint32_t>(begin - piece.offset), static_cast<std::uint32_t>(end - begin),
                        entry.group, entry.momentum});
  }
  return segments;
}

void clear_padding(std::span<float> values, std::span<const Segment> segments) noexcept {
  std::size_t end = 0;
  for (const Segment& segment : segments) {
    std::ranges::fill(values.subspan(end, segment.first - end), 0.0F);
    end = segment.first + segment.count;
  }
  std::ranges::fill(values.subspan(end), 0.0F);
}

void Server::Impl::open_step() {
  clipped = false;
  scalars.clear();
  for (std::size_t group = 0; group < optimizer.groups.size(); ++group) {
    const GroupSpec now = group_now(group);
    if (optimizer.kind != OptimizerKind::outside) scalars.push_back(step_scalars(optimizer.kind, now, now.lr, version));
  }
}

void Server::Impl::update_parameters(ChunkState& chunk, std::span<float> values) {
  std::array<MutableBytes, kStatesMax> new_states;
  std::array<const float*, kStatesMax> old{};
  std::array<float*, kStatesMax> fresh{};
  for (std::size_t i = 0; i < states.size(); ++i) {
    new_states[i] = pool.take(values.size_bytes());
    clear_padding(new_states[i].floats(), chunk.segments);
    old[i] = chunk.states[i].floats().data();
    fresh[i] = new_states[i].floats().data();
  }
  const float* weights = chunk.weights.floats().data();
  in_stretches(values.size(), [&](std::size_t first, std::size_t elements) {
    for (const Segment& segment : chunk.segments) {
      const std::size_t begin = std::max<std::size_t>(segment.first, first);
      const std::size_t end = std::min<std::size_t>(segment.first + segment.count, first + elements);
      if (begin >= end) continue;
      const std::size_t count = end - begin;
      const StepScalars& numbers = scalars[segment.group];
      float* here = values.data() + begin;
      if (optimizer.kind != OptimizerKind::sgd) {
        adam({count, weights + begin, old[0] + begin, old[1] + begin, here, fresh[0] + begin, fresh[1] + begin},
             numbers);
      } else if (optimizer.groups[segment.group].momentum != 0) {
        sgd_momentum({count, weights + begin, old[0] + begin, here, fresh[0] + begin}, numbers);
      } else {
        sgd({count, weights + begin, nullptr, here, nullptr}, numbers);
        // Another group has momentum: the buffer of this one stays zero.
        if (fresh[0] != nullptr) std::fill_n(fresh[0] + begin, count, 0.0F);
      }
    }
  });
  for (std::size_t i = 0; i < states.size(); ++i) chunk.states[i] = std::move(new_states[i]).seal();
}

void Server::Impl::update_statistics(const ChunkState& chunk, std::span<float> values) {
  const float* running = chunk.weights.floats().data();
  MOTLEY_ASSERT(chunk.segments.size() % 2 == 0);
  for (std::size_t i = 0; i < chunk.segments.size(); i += 2) {
    const Segment& mean = chunk.segments[i];
    const Segment& var = chunk.segments[i + 1];
    MOTLEY_ASSERT(mean.count == var.count);
    move_statistics(
        {mean.count, running + mean.first, running + var.first, values.data() + mean.first, values.data() + var.first},
        mean.momentum);
  }
}

void Server::Impl::update(ChunkId id, std::span<float> values) {
  ChunkState& chunk = chunks[id];
  if (statistics(id)) {
    update_statistics(chunk, values);
  } else if (optimizer.kind == OptimizerKind::outside) {
    std::ranges::copy(outside_weights[id].floats(), values.begin());
  } else {
    update_parameters(chunk, values);
  }
  clear_padding(values, chunk.segments);
}

}  // namespace motley::ps
