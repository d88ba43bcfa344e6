#include "modes/work/declared.h"

#include <algorithm>

namespace motley::modes {
namespace {

double magnitude(double x) noexcept { return x < 0 ? -x : x; }

// What a sum may grow with: samples may weigh next to nothing, or more than one each.
double items_of(const Declared& said) noexcept { return std::max(said.weight, static_cast<double>(said.count)); }

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
  return possible(said.count, said.weight) && magnitude(said.loss_sum) <= kLossMax * items_of(said);
}

void DeclaredBounds::Extent::raise(const Extent& by) noexcept {
  weight = std::max(weight, by.weight);
  weight_per_sample = std::max(weight_per_sample, by.weight_per_sample);
  loss = std::max(loss, by.loss);
  loss_per_item = std::max(loss_per_item, by.loss_per_item);
  modes::raise(largest, by.largest);
  modes::raise(per_item, by.per_item);
}

// A few samples may carry as much as all of another contribution: many of the others weigh nothing.
bool DeclaredBounds::Extent::near(const Declared& said) const noexcept {
  const auto count = static_cast<double>(said.count);
  if (said.weight > kFar * (weight + weight_per_sample * count)) return false;
  const double items = items_of(said);
  const auto within = [items](double value, double far, double all, double each) {
    return value <= far * (all + each * items);
  };
  return within(magnitude(said.loss_sum), kLossFar, loss, loss_per_item) &&
         within(said.largest.gradient, kGradientFar, largest.gradient, per_item.gradient) &&
         within(said.largest.statistic, kGradientFar, largest.statistic, per_item.statistic);
}

bool DeclaredBounds::likely(WorkerId worker, const Declared& said) const noexcept {
  Extent others, all;
  std::uint32_t by_others = 0, by_all = 0;
  for (const Seen& seen : seen_) {
    all.raise(seen.most);
    by_all += seen.contributions;
    if (seen.worker == worker) continue;
    others.raise(seen.most);
    by_others += seen.contributions;
  }
  if (by_others >= kEnough) return others.near(said);
  return by_all < kEnough || all.near(said);
}

bool DeclaredBounds::undecided(WorkerId worker, const Declared& said) const noexcept {
  const auto is_other = [worker](const Seen& seen) { return seen.worker != worker; };
  if (std::ranges::count_if(seen_, is_other) != 1 || std::ranges::find_if(seen_, is_other)->local) return false;
  const auto own = std::ranges::find(seen_, worker, &Seen::worker);
  return own != seen_.end() && own->contributions >= kEnough && own->early.near(said);
}

void DeclaredBounds::counted(WorkerId worker, const Declared& said, bool local) {
  if (said.count == 0 || said.weight <= 0) return;  // says nothing of others
  auto known = std::ranges::find(seen_, worker, &Seen::worker);
  if (known == seen_.end()) known = seen_.insert(seen_.end(), Seen{.worker = worker, .local = local});
  const double loss = magnitude(said.loss_sum), items = items_of(said);
  const Extent extent{.weight = said.weight,
                      .weight_per_sample = said.weight / static_cast<double>(said.count),
                      .loss = loss,
                      .loss_per_item = loss / items,
                      .largest = said.largest,
                      .per_item = {said.largest.gradient / items, said.largest.statistic / items}};
  known->most.raise(extent);
  if (known->contributions < kEnough) known->early.raise(extent);
  ++known->contributions;
}

}  // namespace motley::modes
