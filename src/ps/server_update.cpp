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

void Server::Impl::update_parameters(ChunkState& chunk, std::span<float> new_weights) {
  std::array<MutableBytes, kStatesMax> new_states;
  std::array<const float*, kStatesMax> old{};
  std::array<float*, kStatesMax> fresh{};
  for (std::size_t i = 0; i < states.size(); ++i) {
    new_states[i] = pool.take(new_weights.size_bytes());
    clear_padding(new_states[i].floats(), chunk.segments);
    old[i] = chunk.states[i].floats().data();
    fresh[i] = new_states[i].floats().data();
  }
  const float* weights = chunk.weights.floats().data();
  const float* gradient = chunk.gradient.floats().data();
  for (const Segment& s : chunk.segments) {
    const StepScalars& numbers = scalars[s.group];
    if (optimizer.kind != OptimizerKind::sgd) {
      adam({s.count, weights + s.first, gradient + s.first, old[0] + s.first, old[1] + s.first,
            new_weights.data() + s.first, fresh[0] + s.first, fresh[1] + s.first},
           numbers);
    } else if (optimizer.groups[s.group].momentum != 0) {
      sgd_momentum({s.count, weights + s.first, gradient + s.first, old[0] + s.first, new_weights.data() + s.first,
                    fresh[0] + s.first},
                   numbers);
    } else {
      sgd({s.count, weights + s.first, gradient + s.first, nullptr, new_weights.data() + s.first, nullptr}, numbers);
      // Another group has momentum: the buffer of this one stays zero.
      if (fresh[0] != nullptr) std::fill_n(fresh[0] + s.first, s.count, 0.0F);
    }
  }
  for (std::size_t i = 0; i < states.size(); ++i) chunk.states[i] = std::move(new_states[i]).seal();
}

void Server::Impl::update_statistics(const ChunkState& chunk, std::span<float> new_weights) {
  const float* running = chunk.weights.floats().data();
  const float* merged = chunk.gradient.floats().data();
  MOTLEY_ASSERT(chunk.segments.size() % 2 == 0);
  for (std::size_t i = 0; i < chunk.segments.size(); i += 2) {
    const Segment& mean = chunk.segments[i];
    const Segment& var = chunk.segments[i + 1];
    MOTLEY_ASSERT(mean.count == var.count);
    move_statistics({mean.count, running + mean.first, running + var.first, merged + mean.first, merged + var.first,
                     new_weights.data() + mean.first, new_weights.data() + var.first},
                    mean.momentum);
  }
}

void Server::Impl::update(ChunkId id, std::span<float> new_weights) {
  ChunkState& chunk = chunks[id];
  clear_padding(new_weights, chunk.segments);
  if (statistics(id)) {
    update_statistics(chunk, new_weights);
  } else if (optimizer.kind == OptimizerKind::outside) {
    std::ranges::copy(outside_weights[id].floats(), new_weights.begin());
  } else {
    update_parameters(chunk, new_weights);
  }
}

}  // namespace motley::ps
