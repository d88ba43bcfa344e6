#include "modes/exact/suspicion.h"

#include <algorithm>
#include <cmath>

namespace motley::modes {
namespace {

using Sums = std::array<double, std::tuple_size_v<Bearing>>;

double square(const Sums& sums) noexcept {
  double square = 0;
  for (const double sum : sums) square += sum * sum;
  return square;
}

void add(Sums& to, const Bearing& sums, double factor) noexcept {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * static_cast<double>(sums[i]);
}

Sums mean_of(const Pointing& part) noexcept {
  Sums mean{};
  add(mean, *part.bearing, 1 / part.weight);
  return mean;
}

double apart(const Sums& a, const Sums& b) noexcept {
  Sums difference = a;
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= b[i];
  return square(difference);
}

/// How far `off`, squared, is beyond what chance makes of it, or what no second look would find.
double over(double off, double by_chance, const Sums& others) noexcept {
  const double usual = std::max(by_chance, Suspicion::kSame * Suspicion::kSame * square(others));
  return usual > 0 && std::isfinite(off / usual) ? off / usual : 0;
}

}  // namespace

Suspicion::Known& Suspicion::known(WorkerId worker) {
  const auto found = std::ranges::find(known_, worker, &Known::worker);
  return found != known_.end() ? *found : known_.emplace_back(Known{.worker = worker});
}

bool Suspicion::of(WorkerId worker) const noexcept {
  const auto found = std::ranges::find(known_, worker, &Known::worker);
  return found != known_.end() && found->evidence >= 1 / kFalseAlarms;
}

void Suspicion::cleared(WorkerId worker) noexcept {
  const auto found = std::ranges::find(known_, worker, &Known::worker);
  if (found == known_.end()) return;
  found->evidence = 1;
  found->right = std::max(1.0, found->mean);
  found->usual = std::max(found->right, found->usual * kMore);
  if (alone_ == worker) furthest_ = std::max(furthest_, alone_far_);
}

// The means of contributions are about as far apart as their weights say: each scatters by the inverse of its own.
void Suspicion::measure(std::span<const Pointing> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Sums others{};
    double weight = 0, scatter = 0;
    for (std::size_t j = 0; j < parts.size(); ++j) {
      if (j == i) continue;
      weight += parts[j].weight;
      add(others, *parts[j].bearing, 1);
    }
    for (double& sum : others) sum /= weight;
    for (std::size_t j = 0; j < parts.size(); ++j)
      if (j != i) scatter += parts[j].weight * apart(mean_of(parts[j]), others);
    const double of_one = scatter / static_cast<double>(parts.size() - 2);  // by weight 1
    far_[i] = over(apart(mean_of(parts[i]), others), of_one * (1 / parts[i].weight + 1 / weight), others);
  }
}

// Two, one of whom is believed: how much it differs from itself, one step before, is what chance makes.
void Suspicion::measure_beside(const Pointing& believed, std::span<const Pointing> parts) {
  const Sums own = mean_of(believed);
  if (believed_) {
    Sums before{};
    add(before, *believed_, 1);
    const double of_one = apart(own, before) / (1 / believed.weight + 1 / believed_weight_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].believed) continue;
      far_[i] = over(apart(mean_of(parts[i]), own), of_one * (1 / parts[i].weight + 1 / believed.weight), own);
    }
  }
}

std::optional<std::size_t> Suspicion::step(std::span<const Pointing> parts) {
  const bool whole =
      std::ranges::all_of(parts, [](const Pointing& part) { return part.bearing != nullptr && part.weight > 0; });
  const auto believed = std::ranges::find_if(parts, &Pointing::believed);
  if (!whole || parts.size() < 2) return {};
  far_.assign(parts.size(), 0);
  if (parts.size() > 2) {
    measure(parts);
  } else if (believed != parts.end()) {
    measure_beside(*believed, parts);
  }
  if (believed != parts.end()) {
    const Sums own = mean_of(*believed);
    believed_.emplace();
    std::ranges::transform(own, believed_->begin(), [](double sum) { return static_cast<float>(sum); });
    believed_weight_ = believed->weight;
  }
  const auto most = static_cast<std::size_t>(std::ranges::max_element(far_) - far_.begin());
  std::optional<std::size_t> at_once;
  furthest_ = std::max(1.0, furthest_ * kKept);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].believed) continue;
    Known& worker = known(parts[i].worker);
    const double counts =
        std::min(far_[i], kNewestMost * std::max(1.0, worker.mean));  // one lie among many is no habit
    worker.mean = worker.mean == 0 ? far_[i] : worker.mean + kNewest * (counts - worker.mean);
    worker.usual = std::max(worker.right, worker.usual * kKept);
    const double far = far_[i] / worker.usual;
    const bool off = i == most && far > kFar;
    const double ratio = off ? kLying / kChance : (1 - kLying) / (1 - kChance);
    worker.evidence = std::clamp(worker.evidence * ratio, 1.0, 1 / kFalseAlarms);
    if (off && far > std::max(kFarAtOnce, kFurther * furthest_)) {
      at_once = i;
      alone_ = parts[i].worker;
      alone_far_ = far;
    } else {
      furthest_ = std::max(furthest_, far);
    }
  }
  return at_once;
}

}  // namespace motley::modes
