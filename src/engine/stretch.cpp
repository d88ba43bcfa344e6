#include "engine/stretch.h"

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
  order_.server->reduce(chunk, {&gradient_sum, 1}, weight_ > 0 ? weight_ : 1, pass().count);
  sums_[chunk] = Sum::reduced;
}

Result<StretchStep> Soloist::finish(const Outcome& outcome, double compute_seconds, Time now) {
  const auto any = [&](Sum state) { return std::ranges::find(sums_, state) != sums_.end(); };
  if (!finite_ || any(Sum::not_finite)) return Error{ErrorCode::diverged, "a gradient or loss is not finite", ""};
  if (outcome.count != pass().count || any(Sum::awaited))
    return Error{ErrorCode::internal, "the computation ended with a part of its gradient missing", ""};
  ps::Server& server = *order_.server;
  StretchStep step{.number = order_.number,
                   .step = server.version(),
                   .weight = weight_,
                   .loss_sum = loss_sum_,
                   .gradient_norm = server.clips() ? server.clip() : 0,
                   .compute_seconds = compute_seconds,
                   .duration = now - since_,
                   .after = {},
                   .gradients = {}};
  for (ChunkId chunk = 0; chunk < sums_.size(); ++chunk) {
    server.apply(chunk);
    step.gradients.push_back(server.gradient(chunk));
  }
  server.finish_step();
  step.after = server.snapshot();
  ++made_;
  since_ = now;
  begun_ = false;
  std::ranges::fill(sums_, Sum::awaited);
  return step;
}

}  // namespace motley::engine
