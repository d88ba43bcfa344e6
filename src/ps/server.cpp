#include "ps/server.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "ps/server_impl.h"
#include "ps/update.h"

namespace motley::ps {

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;

Result<Server> Server::make(Layout layout, OptimizerSpec optimizer, ScheduleSpec schedule, double clip_norm,
                            const Snapshot& snapshot) {
  if (auto status = check(optimizer); !status) return status.error();
  if (auto status = check(schedule); !status) return status.error();
  if (!std::isfinite(clip_norm)) {
    return Error{ErrorCode::input, "train.clip_norm is not finite, expected a number (0: no clipping)",
                 "correct train.clip_norm"};
  }
  if (auto status = check_groups(layout, optimizer, schedule); !status) return status.error();
  auto impl = std::make_unique<Impl>(std::move(layout), std::move(optimizer), std::move(schedule), clip_norm);
  if (auto status = impl->take(snapshot); !status) return status.error();
  impl->updates = impl->optimizer.updates_before + snapshot.version;
  impl->open_step();
  return Server(std::move(impl));
}

Status Server::Impl::take(const Snapshot& snapshot) {
  if (Status weights = chunks.take_weights(snapshot); !weights) return weights;
  version = snapshot.version;
  norm_before = snapshot.norm_before;
  if (optimizer.kind == OptimizerKind::outside) return optimizer.outside->restore(version, snapshot.optimizer);
  return chunks.take_states(snapshot, pool);
}

void Server::Impl::open_step() {
  clipped.reset();
  scalars.clear();
  for (std::size_t group = 0; group < optimizer.groups.size(); ++group) {
    const GroupSpec now = group_now(group);
    if (optimizer.kind != OptimizerKind::outside) scalars.push_back(step_scalars(optimizer.kind, now, now.lr, updates));
  }
}

void Server::Impl::next_step(double norm) {
  if (clip_by_before) norm_before = norm;
  ++version;
  ++updates;
  open_step();
}

const Layout& Server::layout() const noexcept { return impl_->chunks.layout(); }
std::uint64_t Server::version() const noexcept { return impl_->version; }
bool Server::limits_norm() const noexcept { return impl_->clip_norm > 0; }
bool Server::clips() const noexcept { return limits_norm() && !impl_->norm_before; }
bool Server::clips_by_step_before() const noexcept { return impl_->clip_by_before; }

void Server::clip_by_step_before(std::optional<double> norm) {
  MOTLEY_ASSERT(limits_norm() && impl_->chunks.all(Phase::waiting) && (!norm || std::isfinite(*norm)));
  impl_->clip_by_before = true;
  impl_->norm_before = norm;
}
bool Server::outside() const noexcept { return impl_->optimizer.kind == OptimizerKind::outside; }

double Server::learning_rate(std::size_t group) const { return learning_rate(group, version()); }

double Server::learning_rate(std::size_t group, std::uint64_t step) const {
  MOTLEY_ASSERT(group < impl_->optimizer.groups.size());
  return impl_->rates.at(step, group, impl_->optimizer.groups[group]).lr;
}

double Server::reduce(ChunkId id, std::span<const std::span<const float>> parts, double weight, std::uint64_t samples,
                      std::span<double> part_squares) {
  const std::vector<codec::Encoded> encoded(parts.begin(), parts.end());
  return reduce(id, encoded, weight, samples, part_squares);
}

double Server::reduce(ChunkId id, std::span<const codec::Encoded> parts, double weight, std::uint64_t samples,
                      std::span<double> part_squares) {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  ChunkState& chunk = impl_->chunks[id];
  MOTLEY_ASSERT(chunk.phase == Phase::waiting);
  MOTLEY_ASSERT(!parts.empty());
  const std::size_t elements = impl_->chunks.layout().chunks()[id].elements;
  for (const auto& part : parts) MOTLEY_ASSERT(part.elements() == elements);
  const bool statistics = impl_->chunks.statistics(id);
  const double divisor = statistics ? static_cast<double>(samples) : weight;
  MOTLEY_ASSERT(divisor > 0 && std::isfinite(divisor));

  // Divided, not multiplied by the reciprocal, which would add a bias of its own to every element. torch's mean losses
  // start backward from the rounded 1 / count instead, yet measured against them both ways are equally close.
  chunk.open_gradient = impl_->pool.take(elements * sizeof(float));
  const std::span<float> out = chunk.open_gradient.floats();
  const bool limited = limits_norm() && !statistics;
  const std::size_t blocks = (elements + kBlock - 1) / kBlock;
  chunk.sums.resize(limited || !part_squares.empty() ? blocks : 0);
  chunk.part_sums.resize(part_squares.empty() ? 0 : blocks * parts.size());
  const float factor = limited && impl_->norm_before ? impl_->clip_factor(*impl_->norm_before) : 1;
  impl_->stretches.each(elements, [&](std::size_t first, std::size_t count) {
    const auto of_blocks = [&](std::vector<double>& all, std::size_t each) {
      if (all.empty()) return std::span<double>();
      return std::span(all).subspan(first / kBlock * each, (count + kBlock - 1) / kBlock * each);
    };
    const std::span<float> stretch = out.subspan(first, count);
    sum_parts(stretch, first, parts, static_cast<float>(divisor),
              {.sums = of_blocks(chunk.sums, 1), .exact = limited, .parts = of_blocks(chunk.part_sums, parts.size())});
    if (factor < 1.0F) scale(stretch, factor);
  });
  clear_padding(out, chunk.segments);
  chunk.squares = std::accumulate(chunk.sums.begin(), chunk.sums.end(), 0.0);
  for (std::size_t i = 0; i < chunk.part_sums.size(); ++i) part_squares[i % parts.size()] += chunk.part_sums[i];
  chunk.phase = Phase::reduced;
  return part_squares.empty() ? 0 : chunk.squares;
}

double Server::gradient_norm() const {
  if (!limits_norm()) return 0;
  double squares = 0;
  for (ChunkId c = 0; c < impl_->chunks.size(); ++c) {
    MOTLEY_ASSERT(impl_->chunks[c].phase != Phase::waiting);
    if (!impl_->chunks.statistics(c)) squares += impl_->chunks[c].squares;
  }
  return std::sqrt(squares);
}

Status Server::close_gradient() {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::reduced) && !impl_->clipped);
  const float factor = clips() ? impl_->clip_factor(gradient_norm()) : 1;
  impl_->clipped = factor >= 1.0F ? 1.0F : factor;  // a NaN stays one
  return outside() ? step_outside() : Status();
}

Status Server::step_outside() {
  std::vector<GroupSpec> groups;
  groups.reserve(impl_->optimizer.groups.size());
  for (std::size_t group = 0; group < impl_->optimizer.groups.size(); ++group)
    groups.push_back(impl_->group_now(group));
  std::vector<SharedBytes> weights, gradients;
  impl_->outside_weights.clear();
  for (ChunkId c = 0; c < impl_->chunks.size(); ++c) {
    weights.push_back(impl_->chunks[c].weights);
    gradients.push_back(gradient(c));
    impl_->outside_weights.push_back(impl_->pool.take(impl_->chunks.bytes_of(c)));
  }
  return impl_->optimizer.outside->step(groups, weights, gradients, impl_->outside_weights);
}

SharedBytes Server::apply(ChunkId id) {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  ChunkState& chunk = impl_->chunks[id];
  MOTLEY_ASSERT(chunk.phase == Phase::reduced);
  MOTLEY_ASSERT(impl_->clipped || !(clips() || outside()));
  // Where the gradient was, or beside it where it was given out.
  const SharedBytes kept = std::exchange(chunk.gradient, {});
  MutableBytes values = kept.empty() ? std::move(chunk.open_gradient) : impl_->pool.take(kept.size());
  const std::span<const float> gradient = kept.empty() ? values.floats() : kept.floats();
  if (impl_->chunks.statistics(id)) {
    if (!kept.empty()) std::ranges::copy(gradient, values.floats().begin());
    update_statistics(chunk, values.floats());
  } else if (outside()) {
    std::ranges::copy(impl_->outside_weights[id].floats(), values.floats().begin());
  } else {
    const float factor = kept.empty() ? impl_->clipped.value_or(1) : 1;
    update_parameters({impl_->optimizer, impl_->scalars, impl_->chunks.states(), factor}, chunk, gradient,
                      values.floats(), impl_->pool, impl_->stretches);
  }
  clear_padding(values.floats(), chunk.segments);
  chunk.new_weights = std::move(values).seal();
  chunk.phase = Phase::applied;
  return chunk.new_weights;
}

SharedBytes Server::gradient(ChunkId id) {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  ChunkState& chunk = impl_->chunks[id];
  MOTLEY_ASSERT(chunk.phase == Phase::reduced && (!clips() || impl_->clipped));
  if (!chunk.gradient.empty()) return chunk.gradient;
  const std::span<float> values = chunk.open_gradient.floats();
  if (const float factor = impl_->clipped.value_or(1); factor != 1 && !impl_->chunks.statistics(id)) {
    impl_->stretches.each(values.size(),
                          [&](std::size_t first, std::size_t count) { scale(values.subspan(first, count), factor); });
  }
  chunk.gradient = std::move(chunk.open_gradient).seal();
  return chunk.gradient;
}

void Server::share_work(std::shared_ptr<Parallel> helpers) { impl_->stretches.helpers = std::move(helpers); }

void Server::finish_step() {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::applied));
  const double norm = gradient_norm();
  for (ChunkState& chunk : impl_->chunks) {
    chunk.weights = std::move(chunk.new_weights);
    chunk.new_weights = {};
    chunk.phase = Phase::waiting;
  }
  impl_->next_step(norm);
}

void Server::follow(FollowedRates rates) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting) && rates.lr.size() == impl_->optimizer.groups.size());
  impl_->rates.follow(std::move(rates), impl_->version);
  impl_->open_step();
}

void Server::follow(std::uint64_t first_step, double lr) {
  follow(FollowedRates{first_step, std::vector<double>(impl_->optimizer.groups.size(), lr)});
}

SharedBytes Server::weights(ChunkId id) const {
  MOTLEY_ASSERT(id < impl_->chunks.size());
  return impl_->chunks[id].weights;
}

}  // namespace motley::ps
