// Steps in the memory of a device.

#include <cmath>

#include "base/assert.h"
#include "motley/residence.h"
#include "ps/server_impl.h"

namespace motley::ps {

Status Server::settle(Residence& there) const {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside());
  return there.settle(snapshot(), impl_->optimizer.kind);
}

Result<StepNumbers> Server::step_at(Residence& there, double weight, std::uint64_t samples) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && !outside());
  const Result<StepNumbers> found = there.reduce(weight, samples);
  if (!found) return found.error();
  if (!std::isfinite(found->norm) || !std::isfinite(found->loss_sum))
    return Error{ErrorCode::diverged, "a gradient or loss is not finite", ""};
  float factor = 1;
  if (limits_norm()) factor = std::min(factor, impl_->clip_factor(impl_->norm_before.value_or(found->norm)));
  if (const Status updated = there.update(impl_->scalars, factor); !updated) return updated.error();
  if (impl_->clip_by_before) impl_->norm_before = found->norm;
  ++impl_->version;
  ++impl_->updates;
  ++impl_->updates_there;
  impl_->open_step();
  return *found;
}

namespace {

Result<Snapshot> brought(Residence& there, bool aside, std::uint64_t version, std::optional<double> norm_before) {
  Result<Snapshot> found = there.bring(aside);
  if (!found) return found;
  found->version = version;
  found->norm_before = norm_before;
  return found;
}

}  // namespace

Result<Snapshot> Server::bring(Residence& there) const {
  return brought(there, false, impl_->version, impl_->norm_before);
}

std::function<Result<Snapshot>()> Server::bring_beside(Residence& there) const {
  if (!there.put_aside()) return {};
  return [&there, version = impl_->version, norm = impl_->norm_before] { return brought(there, true, version, norm); };
}

}  // namespace motley::ps
