#include "modes/exact/declared.h"

#include <algorithm>

namespace motley::modes {
namespace {

double magnitude(double x) noexcept { return x < 0 ? -x : x; }

void raise(Largest& to, const Largest& by) noexcept {
  to.gradient = std::max(to.gradient, by.gradient);
  to.statistic = std::max(to.statistic, by.statistic);
}

}  // namespace

// Comparisons are written so that NaN fails them.
bool DeclaredBounds::possible(std::uint64_t count, double weight) noexcept {
  return weight >= 0 && weight <= kWeightPerSampleMax * static_cast<double>(count);
}

bool DeclaredBounds::possible(const Declared& said) noexcept {
  const double items = std::max(said.weight, static_cast<double>(said.count));
  return possible(said.count, said.weight) && magnitude(said.loss_sum) <= kLossMax * items;
}

template <class Of>
DeclaredBounds::Seen DeclaredBounds::largest_of(Of of) const noexcept {
  Seen most;
  for (const Seen& seen : seen_) {
    if (!of(seen)) continue;
    most.contributions += seen.contributions;
    most.weight = std::max(most.weight, seen.weight);
    most.weight_per_sample = std::max(most.weight_per_sample, seen.weight_per_sample);
    most.loss = std::max(most.loss, seen.loss);
    most.loss_per_item = std::max(most.loss_per_item, seen.loss_per_item);
    raise(most.largest, seen.largest);
    raise(most.per_item, seen.per_item);
  }
  return most;
}

bool DeclaredBounds::likely(WorkerId worker, const Declared& said) const noexcept {
  Seen most = largest_of([worker](const Seen& seen) { return seen.worker != worker; });
  if (most.contributions < kEnough) most = largest_of([](const Seen&) { return true; });
  if (most.contributions < kEnough) return true;
  // A few samples may carry as much as all of another contribution: many of the others weigh nothing.
  const auto count = static_cast<double>(said.count);
  if (said.weight > kFar * (most.weight + most.weight_per_sample * count)) return false;
  const double items = std::max(said.weight, count);
  const auto near = [items](double value, double far, double all, double per_item) {
    return value <= far * (all + per_item * items);
  };
  return near(magnitude(said.loss_sum), kLossFar, most.loss, most.loss_per_item) &&
         near(said.largest.gradient, kGradientFar, most.largest.gradient, most.per_item.gradient) &&
         near(said.largest.statistic, kGradientFar, most.largest.statistic, most.per_item.statistic);
}

void DeclaredBounds::counted(WorkerId worker, const Declared& said) {
  if (said.count == 0 || said.weight <= 0) return;  // says nothing of others
  auto known = std::ranges::find(seen_, worker, &Seen::worker);
  if (known == seen_.end()) known = seen_.insert(seen_.end(), Seen{.worker = worker});
  ++known->contributions;
  const double loss = magnitude(said.loss_sum);
  known->weight = std::max(known->weight, said.weight);
  known->weight_per_sample = std::max(known->weight_per_sample, said.weight / static_cast<double>(said.count));
  known->loss = std::max(known->loss, loss);
  known->loss_per_item = std::max(known->loss_per_item, loss / said.weight);
  raise(known->largest, said.largest);
  raise(known->per_item, {said.largest.gradient / said.weight, said.largest.statistic / said.weight});
}

}  // namespace motley::modes
