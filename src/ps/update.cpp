#include "ps/update.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/assert.h"

namespace motley::ps {

void update_parameters(const Update& update, ChunkState& chunk, std::span<const float> gradient,
                       std::span<float> new_weights, BufferPool& pool, const Stretches& stretches) {
  MOTLEY_ASSERT(update.clip == 1 || gradient.data() == new_weights.data());
  std::array<MutableBytes, kStatesMax> new_states;
  std::array<const float*, kStatesMax> old{};
  std::array<float*, kStatesMax> fresh{};
  for (std::size_t i = 0; i < update.states; ++i) {
    old[i] = chunk.states[i].floats().data();
    std::optional<MutableBytes> own = chunk.states_of_update ? chunk.states[i].unseal() : std::nullopt;
    if (own) {
      new_states[i] = std::move(*own);
    } else {
      new_states[i] = pool.take(new_weights.size_bytes());
      clear_padding(new_states[i].floats(), chunk.segments);
    }
    fresh[i] = new_states[i].floats().data();
  }
  const float* weights = chunk.weights.floats().data();
  const auto piece = [&](const Segment& segment, std::size_t begin, std::size_t count) {
    if (update.clip != 1) scale(new_weights.subspan(begin, count), update.clip);
    const StepScalars& numbers = update.scalars[segment.group];
    const float* from = gradient.data() + begin;
    float* to = new_weights.data() + begin;
    if (update.optimizer.kind != OptimizerKind::sgd) {
      adam({count, weights + begin, old[0] + begin, old[1] + begin, from, to, fresh[0] + begin, fresh[1] + begin},
           numbers);
    } else if (update.optimizer.groups[segment.group].momentum != 0) {
      sgd_momentum({count, weights + begin, old[0] + begin, from, to, fresh[0] + begin}, numbers);
    } else {
      sgd({count, weights + begin, nullptr, from, to, nullptr}, numbers);
      // Another group has momentum: the buffer of this one stays zero.
      if (fresh[0] != nullptr) std::fill_n(fresh[0] + begin, count, 0.0F);
    }
  };
  stretches.each(new_weights.size(), [&](std::size_t first, std::size_t elements) {
    for (const Segment& segment : chunk.segments) {
      std::size_t begin = std::max<std::size_t>(segment.first, first);
      const std::size_t end = std::min<std::size_t>(segment.first + segment.count, first + elements);
      // What is scaled is in the nearest cache when the update reads it.
      for (const std::size_t most = update.clip == 1 ? elements : kBlock; begin < end; begin += most)
        piece(segment, begin, std::min(most, end - begin));
    }
  });
  for (std::size_t i = 0; i < update.states; ++i) chunk.states[i] = std::move(new_states[i]).seal();
  chunk.states_of_update = true;
}

void update_statistics(const ChunkState& chunk, std::span<float> values) {
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

}  // namespace motley::ps
