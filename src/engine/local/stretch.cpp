#include "engine/local/stretch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"

namespace motley::engine {

Soloist::Soloist(StretchOrder order) : order_(std::move(order)), since_(order_.opened) {
  const std::size_t chunks = order_.server->layout().chunks().size();
  sums_.resize(chunks);
  held_.resize(chunks);
}

bool Soloist::settle(Residence& there) {
  MOTLEY_ASSERT(made_ == 0);
  if (!order_.server->settle(there)) return false;
  there_ = &there;
  return true;
}

std::span<const float> Soloist::get(ChunkId chunk) {
  held_.at(chunk) = order_.server->weights(chunk);
  return held_[chunk].floats();
}

// What went out before a computation ran out of memory stands, as with leases.
void Soloist::begin(std::uint64_t, double weight, double loss_sum) noexcept {
  if (std::exchange(begun_, true)) return;
  weight_ = weight;
  loss_sum_ = loss_sum;
  finite_ = std::isfinite(weight) && weight >= 0 && std::isfinite(loss_sum);
}

void Soloist::ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept {
  MOTLEY_ASSERT(begun_ && chunk < sums_.size());
  if (!finite_ || sums_[chunk] != Sum::awaited) return;
  if (!codec::Encoded(gradient_sum).finite()) {
    sums_[chunk] = Sum::not_finite;
    return;
  }
  sums_[chunk] = Sum::taken;
  order_.server->reduce(chunk, {&gradient_sum, 1}, divisor(), pass().count);
}

Status Soloist::took(const Outcome& outcome) {
  const auto any = [&](Sum state) { return !resident() && std::ranges::find(sums_, state) != sums_.end(); };
  if (!finite_ || any(Sum::not_finite)) return Error{ErrorCode::diverged, "a gradient or loss is not finite", ""};
  if (outcome.count != pass().count || any(Sum::awaited))
    return Error{ErrorCode::internal, "the computation ended with a part of its gradient missing", ""};
  whole_ = true;
  return {};
}

Status Soloist::update(StretchStep& step) {
  ps::Server& server = *order_.server;
  if (resident()) {
    const Result<StepNumbers> found = server.step_at(*there_, divisor(), pass().count);
    if (!found) return found.error();
    step.loss_sum = found->loss_sum;
    step.gradient_norm = server.limits_norm() ? found->norm : 0;
    return {};
  }
  if (server.clips()) server.clip();
  step.gradient_norm = server.gradient_norm();
  for (ChunkId chunk = 0; chunk < sums_.size(); ++chunk) server.apply(chunk);
  server.finish_step();
  step.after = server.snapshot();
  return {};
}

Result<StretchStep> Soloist::finish(double compute_seconds, Time now) {
  MOTLEY_ASSERT(whole_);
  StretchStep step{.number = order_.number,
                   .step = order_.server->version(),
                   .samples = pass().count,
                   .weight = weight_,
                   .loss_sum = loss_sum_,
                   .learning_rate = order_.server->learning_rate(0),
                   .compute_seconds = compute_seconds,
                   .duration = now - since_,
                   .after = {}};
  if (const Status updated = update(step); !updated) return updated.error();
  ++made_;
  since_ = now;
  begun_ = whole_ = false;
  std::ranges::fill(sums_, Sum::awaited);
  return step;
}

}  // namespace motley::engine
