#include "engine/local/local_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "codec/codec.h"

namespace motley::engine {
namespace {

Error not_finite() { return {ErrorCode::diverged, "a gradient or loss is not finite", ""}; }

}  // namespace

void LocalTrainer::begin_steps() {
  const std::size_t chunks = server_->layout().chunks().size();
  device_ = nullptr;
  begun_ = false;
  sums_.assign(chunks, Sum::awaited);
  held_.assign(chunks, {});
}

bool LocalTrainer::settle(DeviceOptimizer* device) {
  MOTLEY_ASSERT(!begun_);
  const bool settled = device != nullptr && !server_->outside() && server_->settle(*device).ok();
  device_ = settled ? device : nullptr;
  return settled;
}

std::span<const float> LocalTrainer::get(ChunkId chunk) {
  held_.at(chunk) = server_->weights(chunk);
  return held_[chunk].floats();
}

// What went out before a computation ran out of memory stands, as with leases.
void LocalTrainer::begin(std::uint64_t, double weight, double loss_sum) noexcept {
  if (std::exchange(begun_, true)) return;
  step_weight_ = weight;
  step_loss_ = loss_sum;
}

bool LocalTrainer::finite() const noexcept {
  return std::isfinite(step_weight_) && step_weight_ >= 0 && std::isfinite(step_loss_);
}

void LocalTrainer::ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept {
  MOTLEY_ASSERT(begun_ && chunk < sums_.size());
  if (!finite() || sums_[chunk] != Sum::awaited) return;
  if (!codec::Encoded(gradient_sum).finite()) {
    sums_[chunk] = Sum::not_finite;
    return;
  }
  sums_[chunk] = Sum::taken;
  server_->reduce(chunk, {&gradient_sum, 1}, divisor(), samples());
}

Status LocalTrainer::whole(const Outcome& outcome) const {
  const auto any = [&](Sum state) { return !resident() && std::ranges::find(sums_, state) != sums_.end(); };
  if (!finite() || any(Sum::not_finite)) return not_finite();
  if (outcome.count != samples() || !begun_ || any(Sum::awaited))
    return Error{ErrorCode::internal, "the computation ended with a part of its gradient missing", ""};
  return {};
}

Status LocalTrainer::update() {
  MOTLEY_ASSERT(begun_);
  if (resident()) {
    const Result<StepNumbers> found = device_->reduce(divisor(), samples());
    if (!found) return found.error();
    if (!std::isfinite(found->norm) || !std::isfinite(found->loss_sum)) return not_finite();
    if (Status stepped = server_->step_at(*device_, found->norm); !stepped) return stepped;
    step_loss_ = found->loss_sum;
    step_norm_ = server_->limits_norm() ? found->norm : 0;
  } else {
    step_norm_ = server_->gradient_norm();
    if (Status closed = server_->close_gradient(); !closed) return closed;
    for (ChunkId chunk = 0; chunk < sums_.size(); ++chunk) server_->apply(chunk);
    server_->finish_step();
  }
  begun_ = false;
  std::ranges::fill(sums_, Sum::awaited);
  return {};
}

}  // namespace motley::engine
