#include "ps/server.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "ps/kernels.h"
#include "ps/schedule.h"

namespace motley::ps {
namespace {

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
  MutableBytes open_gradient;  // until clipped
  SharedBytes gradient;        // final
  double squares = 0;
  Phase phase = Phase::waiting;
};

/// The optimizer's state names, as in torch's state_dict; empty: it has none.
std::vector<std::string> state_names(const OptimizerSpec& optimizer) {
  if (optimizer.kind != OptimizerKind::sgd) return {"exp_avg", "exp_avg_sq"};
  const bool momentum =
      std::any_of(optimizer.groups.begin(), optimizer.groups.end(), [](const auto& g) { return g.momentum != 0; });
  if (!momentum) return {};
  return {"momentum_buffer"};
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

void clear_padding(std::span<float> values, std::span<const Segment> segments) noexcept {
  std::size_t end = 0;
  for (const Segment& segment : segments) {
    std::fill(values.begin() + end, values.begin() + segment.first, 0.0F);
    end = segment.first + segment.count;
  }
  std::fill(values.begin() + end, values.end(), 0.0F);
}

Error size_error(const std::string& what, std::size_t found, std::size_t expected) {
  return Error{ErrorCode::input,
               what + " has " + std::to_string(found) + " bytes, expected " + std::to_string(expected),
               "use a checkpoint and log written for this model"};
}

/// Bytes that come from a file may start anywhere; the loops want aligned floats.
SharedBytes aligned(const SharedBytes& bytes) {
  const bool fits = reinterpret_cast<std::uintptr_t>(bytes.bytes().data()) % alignof(float) == 0;
  return fits ? bytes : SharedBytes::copy_of(bytes.bytes());
}

}  // namespace

struct Server::Impl {
  Layout layout;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  double clip_norm = 0;
  std::uint64_t version = 0;
  std::vector<std::string> states;
  std::vector<ChunkState> chunks;
  std::vector<StepScalars> scalars;  // by group, of the open step
  bool clipped = false;              // of the open step
  BufferPool pool;

  [[nodiscard]] std::size_t bytes_of(ChunkId chunk) const { return layout.chunks()[chunk].elements * sizeof(float); }
  [[nodiscard]] bool statistics(ChunkId chunk) const { return layout.chunks()[chunk].kind == ChunkKind::statistics; }
  [[nodiscard]] double learning_rate(std::size_t group) const {
    return optimizer.groups[group].lr * learning_rate_factor(schedule, version);
  }
  [[nodiscard]] bool all(Phase phase) const {
    return std::all_of(chunks.begin(), chunks.end(), [phase](const auto& chunk) { return chunk.phase == phase; });
  }

  Status take(const Snapshot& snapshot);
  Status take_states(const Snapshot& snapshot);
  void open_step();
  void update(ChunkId chunk, std::span<float> new_weights);
  void update_parameters(ChunkState& chunk, std::span<float> new_weights);
  static void update_statistics(const ChunkState& chunk, std::span<float> new_weights);
};

Status Server::Impl::take(const Snapshot& snapshot) {
  if (snapshot.weights.size() != chunks.size()) {
    return Error{ErrorCode::input,
                 "the snapshot holds " + std::to_string(snapshot.weights.size()) + " chunks of weights, expected " +
                     std::to_string(chunks.size()),
                 "use a checkpoint written for this model"};
  }
  for (ChunkId c = 0; c < chunks.size(); ++c) {
    if (snapshot.weights[c].size() != bytes_of(c)) {
      return size_error("chunk " + std::to_string(c) + " of the weights", snapshot.weights[c].size(), bytes_of(c));
    }
    chunks[c].weights = aligned(snapshot.weights[c]);
  }
  version = snapshot.version;
  return take_states(snapshot);
}

Status Server::Impl::take_states(const Snapshot& snapshot) {
  for (const auto& [name, values] : snapshot.optimizer) {
    if (std::find(states.begin(), states.end(), name) == states.end()) {
      return Error{ErrorCode::input,
                   "the snapshot holds optimizer state '" + name + "', which this optimizer does not use",
                   "resume with the optimizer the run was started with"};
    }
  }
  if (snapshot.optimizer.empty() && version == 0 && !states.empty()) {
    std::size_t largest = 0;
    for (ChunkId c = 0; c < chunks.size(); ++c) largest = std::max(largest, bytes_of(c));
    MutableBytes buffer = pool.take(largest);
    std::fill(buffer.floats().begin(), buffer.floats().end(), 0.0F);
    const SharedBytes zeros = std::move(buffer).seal();
    for (ChunkId c = 0; c < chunks.size(); ++c) {
      for (std::size_t i = 0; i < states.size() && !statistics(c); ++i) {
        chunks[c].states[i] = zeros.slice(0, bytes_of(c));
      }
    }
    return {};
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto found = snapshot.optimizer.find(states[i]);
    if (found == snapshot.optimizer.end() || found->second.size() != chunks.size()) {
      return Error{ErrorCode::input,
                   "the snapshot at version " + std::to_string(version) + " holds " +
                       std::to_string(found == snapshot.optimizer.end() ? 0 : found->second.size()) +
                       " chunks of optimizer state '" + states[i] + "', expected " + std::to_string(chunks.size()),
                   "resume with the optimizer the run was started with"};
    }
    for (ChunkId c = 0; c < chunks.size(); ++c) {
      if (statistics(c)) continue;
      const SharedBytes& bytes = found->second[c];
      if (bytes.size() != bytes_of(c)) {
        return size_error("chunk " + std::to_string(c) + " of '" + states[i] + "'", bytes.size(), bytes_of(c));
      }
      chunks[c].states[i] = aligned(bytes);
    }
  }
  return {};
}

void Server::Impl::open_step() {
  clipped = false;
  scalars.clear();
  for (std::size_t group = 0; group < optimizer.groups.size(); ++group) {
    scalars.push_back(step_scalars(optimizer.kind, optimizer.groups[group], learning_rate(group), version));
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
  } else {
    update_parameters(chunk, new_weights);
  }
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;

Result<Server> Server::make(Layout layout, OptimizerSpec optimizer, ScheduleSpec schedule, double clip_norm,
                            Snapshot snapshot) {
  if (auto status = check(optimizer); !status) return status.error();
  if (auto status = check(schedule); !status) return status.error();
  if (!std::isfinite(clip_norm)) {
    return Error{ErrorCode::input, "train.clip_norm is not finite, expected a number (0: no clipping)",
                 "correct train.clip_norm"};
  }
  for (const LayoutEntry& entry : layout.entries()) {
    if (entry.kind == TensorKind::trained && entry.group >= optimizer.groups.size()) {
      return Error{ErrorCode::input,
                   "tensor '" + entry.name + "' is in parameter group " + std::to_string(entry.group) +
                       ", expected a number below " + std::to_string(optimizer.groups.size()),
                   "add the group to the optimizer"};
    }
  }
  auto impl = std::make_unique<Impl>();
  impl->layout = std::move(layout);
  impl->optimizer = std::move(optimizer);
  impl->schedule = schedule;
  impl->clip_norm = clip_norm;
  impl->states = state_names(impl->optimizer);
  impl->chunks.resize(impl->layout.chunks().size());
  for (ChunkId c = 0; c < impl->chunks.size(); ++c) impl->chunks[c].segments = segments_of(impl->layout, c);
  if (auto status = impl->take(snapshot); !status) return status.error();
  impl->open_step();
  return Server(std::move(impl));
}

const Layout& Server::layout() const noexcept { return impl_->layout; }
std::uint64_t Server::version() const noexcept { return impl_->version; }
bool Server::clips() const noexcept { return impl_->clip_norm > 0; }

double Server::learning_rate(std::size_t group) const {
  MOTLEY_ASSERT(group < impl_->optimizer.groups.size());
  return impl_->learning_rate(group);
}

void Server::reduce(ChunkId id, std::span<const std::span<const float>> parts, double weight, std::uint64_t samples) {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  ChunkState& chunk = impl_->chunks[id];
  MOTLEY_ASSERT(chunk.phase == Phase::waiting);
  MOTLEY_ASSERT(!parts.empty());
  const std::size_t elements = impl_->layout.chunks()[id].elements;
  for (const auto& part : parts) MOTLEY_ASSERT(part.size() == elements);
  const bool statistics = impl_->statistics(id);
  const double divisor = statistics ? static_cast<double>(samples) : weight;
  MOTLEY_ASSERT(divisor > 0 && std::isfinite(divisor));

  // By the rounded reciprocal and not by division: torch's mean losses start the backward pass from 1 / count rounded
  // to fp32, so every gradient of theirs carries this same rounding.
  const float factor = 1.0F / static_cast<float>(divisor);
  MutableBytes out = impl_->pool.take(elements * sizeof(float));
  chunk.squares = sum_parts(out.floats(), parts, factor, clips() && !statistics);
  clear_padding(out.floats(), chunk.segments);
  if (clips() && !statistics) {
    chunk.gradient = {};
    chunk.open_gradient = std::move(out);
  } else {
    chunk.gradient = std::move(out).seal();
  }
  chunk.phase = Phase::reduced;
}

double Server::clip() {
  MOTLEY_ASSERT(clips() && !impl_->clipped);
  MOTLEY_ASSERT(impl_->all(Phase::reduced));
  double squares = 0;
  for (ChunkId c = 0; c < impl_->chunks.size(); ++c) squares += impl_->chunks[c].squares;
  const double norm = std::sqrt(squares);
  // The operations of torch's max_norm / (norm + 1e-6) on an fp32 scalar.
  const float inverse = 1.0F / (static_cast<float>(norm) + 1e-6F);
  const float factor = inverse * static_cast<float>(impl_->clip_norm);
  for (ChunkId c = 0; c < impl_->chunks.size(); ++c) {
    if (impl_->statistics(c)) continue;
    ChunkState& chunk = impl_->chunks[c];
    if (!(factor >= 1.0F)) scale(chunk.open_gradient.floats(), factor);
    chunk.gradient = std::move(chunk.open_gradient).seal();
  }
  impl_->clipped = true;
  return norm;
}

SharedBytes Server::apply(ChunkId id) {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  ChunkState& chunk = impl_->chunks[id];
  MOTLEY_ASSERT(chunk.phase == Phase::reduced);
  MOTLEY_ASSERT(!clips() || impl_->clipped);
  MutableBytes out = impl_->pool.take(impl_->bytes_of(id));
  impl_->update(id, out.floats());
  chunk.new_weights = std::move(out).seal();
  chunk.phase = Phase::applied;
  return chunk.new_weights;
}

SharedBytes Server::gradient(ChunkId id) const {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  const ChunkState& chunk = impl_->chunks[id];
  MOTLEY_ASSERT(!chunk.gradient.empty());
  return chunk.gradient;
}

void Server::finish_step() {
  MOTLEY_ASSERT(impl_->all(Phase::applied));
  for (ChunkState& chunk : impl_->chunks) {
    chunk.weights = std::move(chunk.new_weights);
    chunk.new_weights = {};
    chunk.phase = Phase::waiting;
  }
  ++impl_->version;
  impl_->open_step();
}

Status Server::redo(std::span<const SharedBytes> gradients) {
  MOTLEY_ASSERT(impl_->all(Phase::waiting));
  if (gradients.size() != impl_->chunks.size()) {
    return Error{ErrorCode::input,
                 "the logged step holds " + std::to_string(gradients.size()) + " chunks, expected " +
                     std::to_string(impl_->chunks.size()),
                 "use a log written for this model"};
  }
  for (ChunkId c = 0; c < gradients.size(); ++c) {
    if (gradients[c].size() != impl_->bytes_of(c)) {
      return size_error("chunk " + std::to_string(c) + " of the logged gradient", gradients[c].size(),
                        impl_->bytes_of(c));
    }
  }
  for (ChunkId c = 0; c < gradients.size(); ++c) {
    impl_->chunks[c].gradient = aligned(gradients[c]);
    impl_->chunks[c].phase = Phase::reduced;
  }
  impl_->clipped = true;  // what is logged is clipped already
  for (ChunkId c = 0; c < gradients.size(); ++c) apply(c);
  finish_step();
  return {};
}

SharedBytes Server::weights(ChunkId id) const {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  return impl_->chunks[id].weights;
}

Snapshot Server::snapshot() const {
  Snapshot result;
  result.version = impl_->version;
  for (std::size_t i = 0; i < impl_->states.size(); ++i)
    result.optimizer[impl_->states[i]].reserve(impl_->chunks.size());
  for (const ChunkState& chunk : impl_->chunks) {
    MOTLEY_ASSERT(chunk.phase != Phase::applied);
    result.weights.push_back(chunk.weights);
    for (std::size_t i = 0; i < impl_->states.size(); ++i)
      result.optimizer[impl_->states[i]].push_back(chunk.states[i]);
  }
  return result;
}

}  // namespace motley::ps
