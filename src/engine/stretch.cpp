#include "engine/stretch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/assert.h"

namespace motley::engine {

Soloist::Soloist(StretchOrder order) : order_(std::move(order)), since_(order_.opened) {
  const std::size_t chunks = order_.server->layout().chunks().size();
  sums_.resize(chunks);
  held_.resize(chunks);
  if (!order_.halves) return;
  squares_.resize(chunks);
  for (const Chunk& chunk : order_.server->layout().chunks()) first_.emplace_back(chunk.elements);
}

bool Soloist::settle(Residence& there) {
  MOTLEY_ASSERT(made_ == 0);
  if (order_.halves || !order_.server->settle(there)) return false;
  there_ = &there;
  return true;
}

Soloist::Part Soloist::part() const {
  const std::uint64_t count = pass().count;
  if (done_ > 0) return {done_, count - done_};
  const std::uint64_t half = count / 2 / order_.grain * order_.grain;
  return {0, order_.halves && half > 0 ? half : count};
}

std::span<const float> Soloist::get(ChunkId chunk) {
  held_.at(chunk) = order_.server->weights(chunk);
  return held_[chunk].floats();
}

// What went out before a computation ran out of memory stands, as with leases.
void Soloist::begin(std::uint64_t, double weight, double loss_sum) noexcept {
  if (std::exchange(begun_, true)) return;
  weights_.push_back(weight);
  loss_sum_ += loss_sum;
  finite_ = finite_ && std::isfinite(weight) && weight >= 0 && std::isfinite(loss_sum_);
}

void Soloist::ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept {
  MOTLEY_ASSERT(begun_ && chunk < sums_.size());
  if (!finite_ || sums_[chunk] != Sum::awaited) return;
  if (!codec::Encoded(gradient_sum).finite()) {
    sums_[chunk] = Sum::not_finite;
    return;
  }
  sums_[chunk] = Sum::taken;
  const Part now = part();
  if (now.first + now.count < pass().count) {
    std::ranges::copy(gradient_sum, first_[chunk].begin());
    return;
  }
  const double divisor = weight() > 0 ? weight() : 1;
  ps::Server& server = *order_.server;
  if (now.first == 0) {
    server.reduce(chunk, {&gradient_sum, 1}, divisor, pass().count);
    return;
  }
  const std::array<std::span<const float>, 2> parts{first_[chunk], gradient_sum};
  std::array<double, 3>& squares = squares_[chunk];
  squares = {};
  const bool gradient = server.layout().chunks()[chunk].kind != ChunkKind::statistics;
  squares[2] =
      server.reduce(chunk, parts, divisor, pass().count, gradient ? std::span(squares).first(2) : std::span<double>());
}

Status Soloist::took(const Outcome& outcome) {
  const auto any = [&](Sum state) { return !resident() && std::ranges::find(sums_, state) != sums_.end(); };
  if (!finite_ || any(Sum::not_finite)) return Error{ErrorCode::diverged, "a gradient or loss is not finite", ""};
  if (outcome.count != part().count || any(Sum::awaited))
    return Error{ErrorCode::internal, "the computation ended with a part of its gradient missing", ""};
  parts_.push_back(outcome.count);
  done_ += outcome.count;
  begun_ = false;
  std::ranges::fill(sums_, Sum::awaited);
  return {};
}

std::optional<plan::NoiseEstimate> Soloist::noise() const {
  if (parts_.size() != 2) return std::nullopt;
  std::array<plan::PartNorm, 2> norms{plan::PartNorm{weights_[0], 0}, plan::PartNorm{weights_[1], 0}};
  double mean_square = 0;
  for (const std::array<double, 3>& squares : squares_) {
    norms[0].square += squares[0];
    norms[1].square += squares[1];
    mean_square += squares[2];
  }
  return plan::noise_estimate(norms, mean_square, static_cast<double>(done_));
}

double Soloist::weight() const { return std::accumulate(weights_.begin(), weights_.end(), 0.0); }

Status Soloist::update(StretchStep& step) {
  ps::Server& server = *order_.server;
  if (resident()) {
    const Result<StepNumbers> found = server.step_at(*there_, weight() > 0 ? weight() : 1, done_);
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
  MOTLEY_ASSERT(whole());
  StretchStep step{.number = order_.number,
                   .step = order_.server->version(),
                   .weight = weight(),
                   .loss_sum = loss_sum_,
                   .learning_rate = order_.server->learning_rate(0),
                   .compute_seconds = compute_seconds,
                   .duration = now - since_,
                   .parts = parts_,
                   .noise = noise(),
                   .after = {}};
  if (const Status updated = update(step); !updated) return updated.error();
  ++made_;
  since_ = now;
  done_ = 0;
  parts_.clear();
  weights_.clear();
  loss_sum_ = 0;
  return step;
}

}  // namespace motley::engine
