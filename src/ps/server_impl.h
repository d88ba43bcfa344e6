#pragma once
// What a Server holds. Private to ps.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "ps/kernels.h"
#include "ps/parallel.h"
#include "ps/schedule.h"
#include "ps/server.h"

namespace motley::ps {

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
  SharedBytes weights;      // at version()
  SharedBytes new_weights;  // at version() + 1, once applied
  // State is replaced at once, so that a step needs room for one copy of it and not two.
  std::array<SharedBytes, kStatesMax> states;
  // Between reduce() and apply(), which puts the new weights in its place, or beside it where gradient() gave it out.
  MutableBytes open_gradient;
  SharedBytes gradient;
  double squares = 0;
  std::vector<double> sums, part_sums;  // of the squares of blocks, while it is reduced
  Phase phase = Phase::waiting;
};

std::vector<std::string> state_names(const OptimizerSpec& optimizer);  // as in torch's state_dict
std::vector<Segment> segments_of(const Layout& layout, ChunkId chunk);
void clear_padding(std::span<float> values, std::span<const Segment> segments) noexcept;
Error size_error(const std::string& what, std::size_t found, std::size_t expected);
/// The same bytes where floats may lie: what comes from a file may start anywhere.
SharedBytes aligned(const SharedBytes& bytes);

struct Server::Impl {
  Layout layout;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::vector<RateChange> rate_changes;
  std::vector<FollowedRates> followed;  // in order of steps
  double clip_norm = 0;
  bool clip_by_before = false;
  std::optional<double> norm_before;
  std::uint64_t version = 0;
  std::vector<std::string> states;
  std::vector<ChunkState> chunks;
  std::vector<StepScalars> scalars;           // by group, of the open step
  bool clipped = false;                       // of the open step
  std::vector<MutableBytes> outside_weights;  // likewise, by chunk, where the optimizer is from outside
  BufferPool pool;
  std::shared_ptr<Parallel> helpers;  // none: the caller's thread does all

  [[nodiscard]] std::size_t bytes_of(ChunkId chunk) const { return layout.chunks()[chunk].elements * sizeof(float); }
  [[nodiscard]] bool statistics(ChunkId chunk) const { return layout.chunks()[chunk].kind == ChunkKind::statistics; }
  /// A group's numbers at the open step.
  [[nodiscard]] GroupSpec group_now(std::size_t group) const {
    const SchedulePoint at = schedule_point(rate_changes, version);
    GroupSpec now = group_at(schedule, group, optimizer.groups[group], at.step);
    for (const FollowedRates& rates : followed)
      if (rates.first_step <= version) now.lr = rates.lr[group];
    now.lr *= at.rate;
    return now;
  }
  [[nodiscard]] bool all(Phase phase) const {
    return std::all_of(chunks.begin(), chunks.end(), [phase](const auto& chunk) { return chunk.phase == phase; });
  }

  /// What a gradient of this norm is multiplied with; 1 or more: it is left as it is.
  [[nodiscard]] float clip_factor(double norm) const {
    // The operations of torch's max_norm / (norm + 1e-6) on an fp32 scalar.
    const float inverse = 1.0F / (static_cast<float>(norm) + 1e-6F);
    return inverse * static_cast<float>(clip_norm);
  }
  Status take(const Snapshot& snapshot);
  Status take_states(const Snapshot& snapshot);
  void open_step();
  /// Calls work(first, count) for stretches of a chunk's elements that together are the chunk, each of whole blocks.
  template <class Work>
  void in_stretches(std::size_t elements, Work&& work) {
    constexpr std::size_t kStretch = 16 * kBlock;  // 256 KiB: some 50 us, many times what it takes to hand one out
    if (!helpers || elements <= kStretch) return work(std::size_t{0}, elements);
    const auto piece = [&](std::size_t i) { work(i * kStretch, std::min(kStretch, elements - i * kStretch)); };
    helpers->each((elements + kStretch - 1) / kStretch, std::ref(piece));
  }
  /// Turns the gradient in `values` into the new weights.
  void update(ChunkId chunk, std::span<float> values);
  void update_parameters(ChunkState& chunk, std::span<float> values);
  static void update_statistics(const ChunkState& chunk, std::span<float> values);
};

}  // namespace motley::ps
