#include "ps/chunks.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::ps {
namespace {

std::vector<std::string> state_names(const OptimizerSpec& optimizer) {
  if (optimizer.kind == OptimizerKind::outside) return {};
  if (optimizer.kind != OptimizerKind::sgd) return {"exp_avg", "exp_avg_sq"};
  const bool momentum = std::ranges::any_of(optimizer.groups, [](const GroupSpec& g) { return g.momentum != 0; });
  return momentum ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
}

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

// What comes from a file may start anywhere.
SharedBytes aligned(const SharedBytes& bytes) {
  const bool fits = reinterpret_cast<std::uintptr_t>(bytes.bytes().data()) % alignof(float) == 0;
  return fits ? bytes : SharedBytes::copy_of(bytes.bytes());
}

Error size_error(const std::string& what, std::size_t found, std::size_t expected) {
  return Error{ErrorCode::input,
               what + " has " + std::to_string(found) + " bytes, expected " + std::to_string(expected),
               "use a checkpoint of this model"};
}

}  // namespace

void clear_padding(std::span<float> values, std::span<const Segment> segments) noexcept {
  std::size_t end = 0;
  for (const Segment& segment : segments) {
    std::ranges::fill(values.subspan(end, segment.first - end), 0.0F);
    end = segment.first + segment.count;
  }
  std::ranges::fill(values.subspan(end), 0.0F);
}

Chunks::Chunks(Layout layout, const OptimizerSpec& optimizer)
    : layout_(std::move(layout)), states_(state_names(optimizer)), chunks_(layout_.chunks().size()) {
  for (ChunkId c = 0; c < chunks_.size(); ++c) chunks_[c].segments = segments_of(layout_, c);
}

bool Chunks::all(Phase phase) const {
  return std::ranges::all_of(chunks_, [phase](const ChunkState& chunk) { return chunk.phase == phase; });
}

Status Chunks::take_weights(const Snapshot& snapshot) {
  if (snapshot.weights.size() != chunks_.size()) {
    return Error{ErrorCode::input,
                 "the snapshot holds " + std::to_string(snapshot.weights.size()) + " chunks of weights, expected " +
                     std::to_string(chunks_.size()),
                 "use a checkpoint written for this model"};
  }
  for (ChunkId c = 0; c < chunks_.size(); ++c) {
    if (snapshot.weights[c].size() != bytes_of(c))
      return size_error("chunk " + std::to_string(c) + " of the weights", snapshot.weights[c].size(), bytes_of(c));
    chunks_[c].weights = aligned(snapshot.weights[c]);
  }
  return {};
}

void Chunks::begin_states(BufferPool& pool) {
  std::size_t largest = 0;
  for (ChunkId c = 0; c < chunks_.size(); ++c) largest = std::max(largest, bytes_of(c));
  MutableBytes buffer = pool.take(largest);
  std::ranges::fill(buffer.floats(), 0.0F);
  const SharedBytes zeros = std::move(buffer).seal();
  for (ChunkId c = 0; c < chunks_.size(); ++c) {
    chunks_[c].states_of_update = false;
    for (std::size_t i = 0; i < states_.size() && !statistics(c); ++i)
      chunks_[c].states[i] = zeros.slice(0, bytes_of(c));
  }
}

Status Chunks::take_states(const Snapshot& snapshot, BufferPool& pool) {
  for (const auto& [name, values] : snapshot.optimizer) {
    if (std::ranges::find(states_, name) == states_.end()) {
      return Error{ErrorCode::input,
                   "the snapshot holds optimizer state '" + name + "', which this optimizer does not use",
                   "resume with the optimizer the run was started with"};
    }
  }
  if (snapshot.optimizer.empty() && snapshot.version == 0 && !states_.empty()) {
    begin_states(pool);
    return {};
  }
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto found = snapshot.optimizer.find(states_[i]);
    if (found == snapshot.optimizer.end() || found->second.size() != chunks_.size()) {
      return Error{ErrorCode::input,
                   "the snapshot at version " + std::to_string(snapshot.version) + " holds " +
                       std::to_string(found == snapshot.optimizer.end() ? 0 : found->second.size()) +
                       " chunks of optimizer state '" + states_[i] + "', expected " + std::to_string(chunks_.size()),
                   "resume with the optimizer the run was started with"};
    }
    for (ChunkId c = 0; c < chunks_.size(); ++c) {
      if (statistics(c)) continue;
      const SharedBytes& bytes = found->second[c];
      if (bytes.size() != bytes_of(c))
        return size_error("chunk " + std::to_string(c) + " of '" + states_[i] + "'", bytes.size(), bytes_of(c));
      chunks_[c].states[i] = aligned(bytes);
      chunks_[c].states_of_update = false;
    }
  }
  return {};
}

void Chunks::add_handles(Snapshot& snapshot) const {
  for (const std::string& name : states_) snapshot.optimizer[name].reserve(chunks_.size());
  for (const ChunkState& chunk : chunks_) {
    MOTLEY_ASSERT(chunk.phase != Phase::applied);
    snapshot.weights.push_back(chunk.weights);
    for (std::size_t i = 0; i < states_.size(); ++i) snapshot.optimizer[states_[i]].push_back(chunk.states[i]);
  }
}

}  // namespace motley::ps
