#include "base/batch_plan.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"

namespace motley {

BatchPlan::BatchPlan(std::uint64_t samples, std::uint64_t batch, std::span<const BatchChange> changes)
    : samples_(samples) {
  MOTLEY_ASSERT(samples > 0 && batch > 0);
  segments_.push_back({.batch = std::min(batch, samples)});
  for (const BatchChange& each : changes) change(each);
}

void BatchPlan::change(const BatchChange& change) {
  MOTLEY_ASSERT(change.first_step > segments_.back().first_step && change.batch > 0);
  const StepRange at = range(change.first_step);
  segments_.push_back({change.first_step, at.epoch, at.order_first, std::min(change.batch, samples_)});
}

const BatchPlan::Segment& BatchPlan::segment(std::uint64_t step) const noexcept {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), step,
                                      [](std::uint64_t value, const Segment& each) { return value < each.first_step; });
  return *std::prev(after);
}

std::uint64_t BatchPlan::steps_of(std::uint64_t samples, std::uint64_t batch) const noexcept {
  return samples / batch + (samples % batch != 0 ? 1 : 0);
}

StepRange BatchPlan::range(std::uint64_t step) const noexcept {
  const Segment& from = segment(step);
  std::uint64_t epoch = from.epoch;
  std::uint64_t first = from.position;
  std::uint64_t steps = step - from.first_step;
  const std::uint64_t begun = steps_of(samples_ - from.position, from.batch);
  if (steps >= begun) {
    steps -= begun;
    const std::uint64_t whole = steps_of(samples_, from.batch);
    epoch += 1 + steps / whole;
    steps %= whole;
    first = 0;
  }
  first += steps * from.batch;
  return {.epoch = epoch, .order_first = first, .count = std::min(from.batch, samples_ - first)};
}

std::uint64_t BatchPlan::first_step(std::uint64_t epoch) const noexcept {
  auto from = segments_.end() - 1;
  while (from->epoch > epoch || (from->epoch == epoch && from->position > 0)) --from;
  if (from->epoch == epoch) return from->first_step;
  return from->first_step + steps_of(samples_ - from->position, from->batch) +
         (epoch - from->epoch - 1) * steps_of(samples_, from->batch);
}

}  // namespace motley
