// Steps of which a device makes the sums and the update, and others contribute.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "ps/server_impl.h"

namespace motley::ps {

Status Server::move_to(std::shared_ptr<DeviceServer> device) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside() && !impl_->there);
  if (Status settled = device->settle(snapshot(), impl_->optimizer.kind); !settled) return settled;
  impl_->there = std::move(device);
  return {};
}

const std::shared_ptr<DeviceServer>& Server::there() const noexcept { return impl_->there; }

Status Server::reduce_there(std::span<const std::vector<GradientPart>> parts, double weight, std::uint64_t samples) {
  MOTLEY_ASSERT(impl_->there && impl_->chunks.all(Phase::waiting) && parts.size() == impl_->chunks.size());
  if (Status summed = impl_->there->sum(parts); !summed) return summed;
  const Result<StepNumbers> found = impl_->there->reduce(weight, samples);
  if (!found) return found.error();
  impl_->norm_there = found->norm;
  for (ChunkState& chunk : impl_->chunks) chunk.phase = Phase::reduced;
  return {};
}

Status Server::update_there() {
  MOTLEY_ASSERT(impl_->there && impl_->chunks.all(Phase::reduced));
  float factor = 1;
  if (limits_norm()) factor = std::min(factor, impl_->clip_factor(impl_->norm_before.value_or(impl_->norm_there)));
  impl_->clipped = factor;
  impl_->state_there = true;
  if (Status updated = impl_->there->update(impl_->scalars, factor); !updated) return updated;
  Result<std::vector<SharedBytes>> weights = impl_->there->bring_weights();
  if (!weights) return weights.error();
  for (ChunkId chunk = 0; chunk < impl_->chunks.size(); ++chunk)
    impl_->chunks[chunk].new_weights = std::move((*weights)[chunk]);
  return {};
}

Status Server::bring_state() {
  if (!impl_->state_there) return {};
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting));
  Result<Snapshot> found = impl_->there->bring(false);
  if (!found) return found.error();
  found->version = impl_->version;
  if (Status taken = impl_->chunks.take_states(*found, impl_->pool); !taken) return taken;
  impl_->state_there = false;
  return {};
}

Status Server::come_back() {
  if (!impl_->there) return {};
  if (Status brought = bring_state(); !brought) return brought;
  std::exchange(impl_->there, nullptr)->leave();
  return {};
}

}  // namespace motley::ps
