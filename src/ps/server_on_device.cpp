// Steps in the memory of a device: their numbers, and what comes from there.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "ps/server_impl.h"

namespace motley::ps {

Status Server::settle(DeviceOptimizer& device) const {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside());
  return device.settle(snapshot(), impl_->optimizer.kind);
}

Status Server::step_at(DeviceOptimizer& device, double norm) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside());
  float factor = 1;
  if (limits_norm()) factor = std::min(factor, impl_->clip_factor(impl_->norm_before.value_or(norm)));
  if (Status updated = device.update(impl_->scalars, factor); !updated) return updated;
  ++impl_->updates_on_device;
  impl_->next_step(norm);
  return {};
}

Status Server::download_weights(DeviceServer& device) {
  Result<std::vector<SharedBytes>> weights = device.download_weights();
  if (!weights) return weights.error();
  for (ChunkId chunk = 0; chunk < impl_->chunks.size(); ++chunk)
    impl_->chunks[chunk].weights = std::move((*weights)[chunk]);
  return {};
}

namespace {

Result<Snapshot> downloaded(DeviceOptimizer& device, bool aside, std::uint64_t version,
                            std::optional<double> norm_before) {
  Result<Snapshot> found = device.download(aside);
  if (!found) return found;
  found->version = version;
  found->norm_before = norm_before;
  return found;
}

}  // namespace

Result<Snapshot> Server::download(DeviceOptimizer& device) const {
  return downloaded(device, false, impl_->version, impl_->norm_before);
}

std::function<Result<Snapshot>()> Server::download_in_background(DeviceOptimizer& device) const {
  if (!device.put_aside()) return {};
  return [&device, version = impl_->version, norm = impl_->norm_before] {
    return downloaded(device, true, version, norm);
  };
}

}  // namespace motley::ps
