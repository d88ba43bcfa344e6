#include <algorithm>

#include "base/assert.h"
#include "ps/server_impl.h"

namespace motley::ps {

std::vector<std::string> state_names(const OptimizerSpec& optimizer) {
  if (optimizer.kind == OptimizerKind::outside) return {};
  if (optimizer.kind != OptimizerKind::sgd) return {"exp_avg", "exp_avg_sq"};
  const bool momentum =
      std::any_of(optimizer.groups.begin(), optimizer.groups.end(), [](const auto& g) { return g.momentum != 0; });
  if (!momentum) return {};
  return {"momentum_buffer"};
}

Error size_error(const std::string& what, std::size_t found, std::size_t expected) {
  return Error{ErrorCode::input,
               what + " has " + std::to_string(found) + " bytes, expected " + std::to_string(expected),
               "use a checkpoint and log written for this model"};
}

SharedBytes aligned(const SharedBytes& bytes) {
  const bool fits = reinterpret_cast<std::uintptr_t>(bytes.bytes().data()) % alignof(float) == 0;
  return fits ? bytes : SharedBytes::copy_of(bytes.bytes());
}

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
  norm_before = snapshot.norm_before;
  return take_states(snapshot);
}

Status Server::Impl::take_states(const Snapshot& snapshot) {
  if (optimizer.kind == OptimizerKind::outside) return optimizer.outside->restore(version, snapshot.optimizer);
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

Snapshot Server::snapshot() const {
  Snapshot result = handles();
  if (impl_->optimizer.kind == OptimizerKind::outside) result.optimizer = impl_->optimizer.outside->state();
  return result;
}

Snapshot Server::handles() const {
  Snapshot result;
  result.version = impl_->version;
  result.norm_before = impl_->norm_before;
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

Server Server::fork() const {
  MOTLEY_ASSERT(!outside());
  Result<Server> made = make(impl_->layout, impl_->optimizer, impl_->schedule, impl_->clip_norm, snapshot());
  MOTLEY_ASSERT(made.ok());
  made->impl_->followed = impl_->followed;
  made->impl_->clip_by_before = impl_->clip_by_before;
  made->set_rate_changes(impl_->rate_changes);
  made->impl_->helpers = impl_->helpers;
  made->impl_->pool = impl_->pool;  // what one gives back the other takes, so that both do not keep idle buffers
  return std::move(*made);
}

void Server::adopt(const Snapshot& of_fork) {
  MOTLEY_ASSERT(impl_->all(Phase::waiting));
  const Status taken = impl_->take(of_fork);
  MOTLEY_ASSERT(taken.ok());
  impl_->open_step();
}

}  // namespace motley::ps
