// Steps of which a device makes the sums and the update, and others contribute.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "ps/server_impl.h"

namespace motley::ps {

Status Server::move_to(std::shared_ptr<DeviceServer> device) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside() && !impl_->device);
  if (Status settled = device->settle(snapshot(), impl_->optimizer.kind); !settled) return settled;
  impl_->device = std::move(device);
  return {};
}

const std::shared_ptr<DeviceServer>& Server::on_device() const noexcept { return impl_->device; }

Status Server::reduce_on_device(std::span<const std::vector<GradientPart>> parts, double weight,
                                std::uint64_t samples) {
  MOTLEY_ASSERT(impl_->device && impl_->chunks.all(Phase::waiting) && parts.size() == impl_->chunks.size());
  if (Status summed = impl_->device->sum(parts); !summed) return summed;
  const Result<StepNumbers> found = impl_->device->reduce(weight, samples);
  if (!found) return found.error();
  impl_->norm_on_device = found->norm;
  for (ChunkState& chunk : impl_->chunks) chunk.phase = Phase::reduced;
  return {};
}

Status Server::update_on_device() {
  MOTLEY_ASSERT(impl_->device && impl_->chunks.all(Phase::reduced));
  float factor = 1;
  if (limits_norm()) factor = std::min(factor, impl_->clip_factor(impl_->norm_before.value_or(impl_->norm_on_device)));
  impl_->clipped = factor;
  impl_->state_on_device = true;
  if (Status updated = impl_->device->update(impl_->scalars, factor); !updated) return updated;
  Result<std::vector<SharedBytes>> weights = impl_->device->download_weights();
  if (!weights) return weights.error();
  for (ChunkId chunk = 0; chunk < impl_->chunks.size(); ++chunk)
    impl_->chunks[chunk].new_weights = std::move((*weights)[chunk]);
  return {};
}

Status Server::download_state() {
  if (!impl_->state_on_device) return {};
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting));
  Result<Snapshot> found = impl_->device->download(false);
  if (!found) return found.error();
  found->version = impl_->version;
  if (Status taken = impl_->chunks.take_states(*found, impl_->pool); !taken) return taken;
  impl_->state_on_device = false;
  return {};
}

Status Server::offload() {
  if (!impl_->device) return {};
  if (Status downloaded = download_state(); !downloaded) return downloaded;
  std::exchange(impl_->device, nullptr)->leave();
  return {};
}

}  // namespace motley::ps
