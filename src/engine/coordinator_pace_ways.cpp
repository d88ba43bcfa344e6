// MeasuredPace where the way that numbers go changes, or contributions come as one sum.

#include <algorithm>
#include <chrono>

#include "engine/coordinator_pace.h"
#include "plan/link_model.h"

namespace motley::engine {

std::size_t MeasuredPace::remotes() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](const Worker& each) { return each.link.remote(); }));
}

void MeasuredPace::expect_another_way(plan::Affine& time, const plan::Exposure& wire) const noexcept {
  const std::size_t together = remotes();
  if (untried_ == 0 || together < 2) return;
  const double first = wire.version_seconds() / static_cast<double>(together);
  time.fixed = std::max(0.0, time.fixed - wire.believed()) + first;
}

// A version there and back, as the first one came, beside all others.
Duration MeasuredPace::untried(fleet::WorkerId worker) const noexcept {
  constexpr double kBelieved = 2.5;
  if (untried_ == 0 || !of(worker).link.remote()) return {};
  const double version = std::clamp(of(worker).train.wire().version_seconds(), plan::kSlowVersion, kBelieved);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(2 * version));
}

void MeasuredPace::begin_way() {
  untried_ = kUntried;
  for (Worker& each : workers_) each.train.wire().scale(1);
}

void MeasuredPace::summed(fleet::WorkerId worker, modes::LeaseId lease, std::uint64_t samples, Duration time) {
  summed_.push_back({.worker = worker, .lease = lease, .samples = samples, .seconds = seconds(time)});
}

// A sum is whole at the same time for all who are in it. What that takes beyond the longest computing is what each
// waits: by that it is nobody's fault, and shares follow what devices take.
void MeasuredPace::learn_from_sums() {
  double computing = 0, took = 0;
  for (Summed& each : summed_) {
    const std::optional<double> said = of(each.worker).train.computed(each.lease);
    if (!said) return;
    each.computed = std::min(*said, each.seconds);  // nobody computes for longer than he has the lease
    computing = std::max(computing, each.computed);
    took = std::max(took, each.seconds);
  }
  for (const Summed& each : summed_) {
    plan::WorkerSpeed& speed = at(each.worker).train;
    if (!in_sums_) speed.wire().scale(1);  // it was another way
    speed.elapsed(each.lease, each.samples, each.computed + took - computing);
  }
}

}  // namespace motley::engine
