// Steps in the memory of a device.

#include <cmath>

#include "base/assert.h"
#include "motley/device_optimizer.h"
#include "ps/server_impl.h"

namespace motley::ps {

Status Server::settle(DeviceOptimizer& device) const {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside());
  return device.settle(snapshot(), impl_->optimizer.kind);
}

Result<StepNumbers> Server::step_at(DeviceOptimizer& device, double weight, std::uint64_t samples) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside());
  const Result<StepNumbers> found = device.reduce(weight, samples);
  if (!found) return found.error();
  if (!std::isfinite(found->norm) || !std::isfinite(found->loss_sum))
    return Error{ErrorCode::diverged, "a gradient or loss is not finite", ""};
  float factor = 1;
  if (limits_norm()) factor = std::min(factor, impl_->clip_factor(impl_->norm_before.value_or(found->norm)));
  if (const Status updated = device.update(impl_->scalars, factor); !updated) return updated.error();
  if (impl_->clip_by_before) impl_->norm_before = found->norm;
  ++impl_->version;
  ++impl_->updates;
  ++impl_->updates_on_device;
  impl_->open_step();
  return *found;
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
