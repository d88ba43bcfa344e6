#pragma once
// What a server holds of each chunk: weights, optimizer state, the gradient of the open step. Private to ps.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "motley/bytes.h"
#include "motley/device_optimizer.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "ps/spec.h"

namespace motley::ps {

using motley::Snapshot;

constexpr std::size_t kStatesMax = 2;

enum class Phase : std::uint8_t { waiting, reduced, applied };

/// A stretch of a chunk that belongs to one tensor. Padding lies between segments and is never computed with: 0 / 0
/// would poison it where eps is zero.
struct Segment {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t group = 0;
  float momentum = 0;  // statistics chunk
};

struct ChunkState {
  std::vector<Segment> segments;
  SharedBytes weights;      // at the version of the day
  SharedBytes new_weights;  // at the next one, once applied
  // State is replaced at once, so that a step needs room for one copy of it and not two.
  std::array<SharedBytes, kStatesMax> states;
  bool states_of_update = false;  // whose memory an update may take again
  // From when it is summed until the new weights take its place, or lie beside it where it was given out.
  MutableBytes open_gradient;
  SharedBytes gradient;
  double squares = 0;
  std::vector<double> sums, part_sums;  // of the squares of blocks, while it is summed
  Phase phase = Phase::waiting;
};

void clear_padding(std::span<float> values, std::span<const Segment> segments) noexcept;

class Chunks {
 public:
  Chunks(Layout layout, const OptimizerSpec& optimizer);

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t size() const noexcept { return chunks_.size(); }
  [[nodiscard]] auto begin() noexcept { return chunks_.begin(); }
  [[nodiscard]] auto end() noexcept { return chunks_.end(); }
  [[nodiscard]] ChunkState& operator[](ChunkId chunk) noexcept { return chunks_[chunk]; }
  [[nodiscard]] const ChunkState& operator[](ChunkId chunk) const noexcept { return chunks_[chunk]; }
  [[nodiscard]] std::size_t bytes_of(ChunkId chunk) const { return layout_.chunks()[chunk].elements * sizeof(float); }
  [[nodiscard]] bool statistics(ChunkId chunk) const { return layout_.chunks()[chunk].kind == ChunkKind::statistics; }
  [[nodiscard]] bool all(Phase phase) const;
  /// Vectors of optimizer state that the server keeps itself.
  [[nodiscard]] std::size_t states() const noexcept { return states_.size(); }

  /// Errors: input (other sizes).
  Status take_weights(const Snapshot& snapshot);
  /// At version 0 there may be none: it begins at zero. Errors: input (other sizes, or of another optimizer).
  Status take_states(const Snapshot& snapshot, BufferPool& pool);
  /// Adds handles to weights and state. REQUIRES no chunk applied.
  void add_handles(Snapshot& snapshot) const;
  /// All states are zero.
  void begin_states(BufferPool& pool);

 private:
  Layout layout_;
  std::vector<std::string> states_;  // as in torch's state_dict
  std::vector<ChunkState> chunks_;
};

}  // namespace motley::ps
