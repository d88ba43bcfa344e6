#pragma once
// Hands out each chunk of a gradient once, as soon as all tensors in it are final. One thread at a time.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compute/task_io.h"
#include "motley/layout.h"

namespace motley::compute {

class ChunkPublisher {
 public:
  using Gradient = std::function<std::span<const float>(ChunkId)>;

  /// `gradient`: a chunk of the gradient sum. REQUIRES layout outlives this.
  ChunkPublisher(const Layout& layout, Gradient gradient)
      : layout_(layout), gradient_(std::move(gradient)), waiting_for_(layout.chunks().size()) {}

  void start(Sink& sink) {
    sink_ = &sink;
    for (ChunkId chunk = 0; chunk < waiting_for_.size(); ++chunk) {
      const auto [first, last] = layout_.placements_of(chunk);
      waiting_for_[chunk] = static_cast<std::uint32_t>(last - first);
    }
  }
  void placement_final(std::size_t placement) {
    const Placement& place = layout_.placements()[placement];
    // Chunks lie in order of offsets; a tensor may reach over several.
    const std::span<const Chunk> chunks = layout_.chunks();
    auto chunk = std::upper_bound(chunks.begin(), chunks.end(), place.offset,
                                  [](std::uint64_t offset, const Chunk& c) { return offset < c.offset; });
    for (--chunk; chunk != chunks.end() && chunk->offset < place.offset + place.elements; ++chunk) {
      const auto id = static_cast<ChunkId>(chunk - chunks.begin());
      std::uint32_t& left = waiting_for_[id];
      if (left == 0) continue;
      if (--left == 0) publish(id);
    }
  }
  /// Whatever is left: tensors that got no gradient, and everything where nobody tells what is final.
  void finish() {
    for (ChunkId chunk = static_cast<ChunkId>(waiting_for_.size()); chunk-- > 0;) {
      if (waiting_for_[chunk] == 0) continue;
      waiting_for_[chunk] = 0;
      publish(chunk);
    }
  }

 private:
  void publish(ChunkId chunk) { sink_->ready(chunk, gradient_(chunk)); }

  const Layout& layout_;
  Gradient gradient_;
  std::vector<std::uint32_t> waiting_for_;  // tensors of the chunk that are not final; 0: handed out
  Sink* sink_ = nullptr;
};

}  // namespace motley::compute
