#include "plan/planner.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace motley::plan {
namespace {

// A change of shares costs a step or two of unsettled measurements, so small gains are not worth it.
constexpr double kGainWorthMoving = 0.03;
// An unmeasured worker is taken for so many times slower than the mean: its first share must not hold up the rest.
constexpr double kUnmeasuredSlowness = 4;
constexpr int kBisections = 60;

// A candidate in whole grains.
struct Worker {
  double fixed = 0, per_unit = 0;
  bool remote = false;
  double wait = 0;

  /// With so many remote workers that have a share.
  [[nodiscard]] double fixed_among(std::size_t remotes) const noexcept {
    return remote && remotes > 1 ? fixed + wait * static_cast<double>(remotes - 1) : fixed;
  }
  [[nodiscard]] double seconds(std::uint64_t units, std::size_t remotes) const noexcept {
    return units == 0 ? 0 : fixed_among(remotes) + per_unit * static_cast<double>(units);
  }
  /// Units it finishes within `limit` seconds, `most` at the most.
  [[nodiscard]] std::uint64_t within(double limit, std::size_t remotes, std::uint64_t most) const noexcept {
    const double units = (limit - fixed_among(remotes)) / per_unit;
    if (!(units >= 1)) return 0;
    return units >= static_cast<double>(most) ? most : static_cast<std::uint64_t>(units);
  }
};

struct Allotment {
  std::vector<std::uint64_t> units;
  double seconds = 0;
};

class Allocation {
 public:
  Allocation(const Request& request, std::vector<Worker> workers, std::uint64_t units)
      : workers_(std::move(workers)), link_seconds_(request.link_seconds), units_(units), capacity_(workers_.size()) {}

  Allotment best() {
    const auto remote_all =
        static_cast<std::size_t>(std::ranges::count_if(workers_, [](const Worker& worker) { return worker.remote; }));
    const bool shared = link_seconds_ > 0 ||
                        std::ranges::any_of(workers_, [](const Worker& each) { return each.remote && each.wait > 0; });
    std::size_t remote = !shared ? remote_all : remote_all < workers_.size() ? 0 : 1;
    Allotment found = with_remote(remote);
    // More remote workers end the computing sooner and keep the link busy longer.
    while (++remote <= remote_all) {
      if (done_within(found.seconds, remote) < units_) continue;
      Allotment more = with_remote(remote);
      if (more.seconds < found.seconds) found = std::move(more);
    }
    return found;
  }

 private:
  /// Units done within `limit` seconds by the local workers and the `remote` most capable remote ones; their
  /// capacities are left in capacity_.
  std::uint64_t done_within(double limit, std::size_t remote) {
    std::uint64_t sum = 0;
    remotes_.clear();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      capacity_[i] = workers_[i].within(limit, remote, units_);
      if (workers_[i].remote) {
        remotes_.push_back(i);
      } else {
        sum += capacity_[i];
      }
    }
    if (remotes_.size() > remote) {
      const auto more = [&](std::size_t a, std::size_t b) {
        return capacity_[a] != capacity_[b] ? capacity_[a] > capacity_[b] : a < b;
      };
      std::ranges::nth_element(remotes_, remotes_.begin() + static_cast<std::ptrdiff_t>(remote), more);
      for (std::size_t i = remote; i < remotes_.size(); ++i) capacity_[remotes_[i]] = 0;
    }
    for (const std::size_t i : remotes_) sum += capacity_[i];
    return sum;
  }

  Allotment with_remote(std::size_t remote) {
    double low = 0;
    double high = 1e-6;
    while (done_within(high, remote) < units_) {
      low = high;
      high *= 2;
    }
    for (int i = 0; i < kBisections && low < high; ++i) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      (done_within(middle, remote) < units_ ? low : high) = middle;
    }
    std::uint64_t surplus = done_within(high, remote) - units_;
    Allotment shares{.units = capacity_};
    // Only workers whose last unit ends just then can have one too many; whoever would be last gives it up.
    for (; surplus > 0; --surplus) {
      std::size_t last = 0;
      for (std::size_t i = 1; i < workers_.size(); ++i)
        if (workers_[i].seconds(shares.units[i], remote) > workers_[last].seconds(shares.units[last], remote)) last = i;
      --shares.units[last];
    }
    finish(shares);
    return shares;
  }

 public:
  void finish(Allotment& shares) const noexcept {
    std::size_t remote = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].remote && shares.units[i] > 0) ++remote;
    double computed = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      computed = std::max(computed, workers_[i].seconds(shares.units[i], remote));
    shares.seconds = std::max(computed, static_cast<double>(remote) * link_seconds_);
  }

 private:
  std::vector<Worker> workers_;
  double link_seconds_;
  std::uint64_t units_;
  std::vector<std::uint64_t> capacity_;
  std::vector<std::size_t> remotes_;
};

bool usable(const std::optional<Affine>& time) noexcept {
  return time && time->per_sample > 0 && std::isfinite(time->per_sample) && time->fixed >= 0 &&
         std::isfinite(time->fixed);
}

/// Mean time per sample of the measured; 0 if there are none.
double mean_per_sample(std::span<const Candidate> candidates) noexcept {
  double sum = 0;
  std::size_t measured = 0;
  for (const Candidate& candidate : candidates) {
    if (!usable(candidate.time)) continue;
    sum += candidate.time->per_sample;
    ++measured;
  }
  return measured > 0 ? sum / static_cast<double>(measured) : 0;
}

std::vector<Worker> in_units(const Request& request, std::span<const Candidate> candidates) {
  const double mean = mean_per_sample(candidates);
  const auto grain = static_cast<double>(request.grain);
  std::vector<Worker> workers;
  for (const Candidate& candidate : candidates) {
    Worker worker{.fixed = 0, .per_unit = grain, .remote = candidate.remote, .wait = candidate.wait};
    if (usable(candidate.time)) {
      worker.fixed = candidate.time->fixed;
      worker.per_unit = candidate.time->per_sample * grain;
    } else if (mean > 0) {
      worker.per_unit = kUnmeasuredSlowness * mean * grain;
    }
    workers.push_back(worker);
  }
  return workers;
}

bool fits(std::span<const std::uint64_t> counts, const Request& request, std::size_t workers) {
  if (counts.size() != workers) return false;
  std::uint64_t sum = 0;
  bool partial = false;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > request.total - sum) return false;
    sum += counts[i];
    if (counts[i] == 0) continue;
    if (partial) return false;  // only the last non-zero count may be cut short
    partial = counts[i] % request.grain != 0;
  }
  return sum == request.total;
}

}  // namespace

Plan make_plan(const Request& request, std::span<const Candidate> candidates, std::span<const std::uint64_t> previous) {
  MOTLEY_ASSERT(!candidates.empty());
  MOTLEY_ASSERT(request.grain > 0);
  Plan plan{.counts = std::vector<std::uint64_t>(candidates.size(), 0)};
  if (request.total == 0) return plan;
  const std::uint64_t units = request.total / request.grain + (request.total % request.grain != 0 ? 1 : 0);
  Allocation allocation(request, in_units(request, candidates), units);
  Allotment best = allocation.best();

  const bool settled = std::ranges::all_of(candidates, [](const Candidate& each) { return usable(each.time); });
  if (settled && fits(previous, request, candidates.size())) {
    Allotment before;
    for (const std::uint64_t count : previous)
      before.units.push_back(count / request.grain + (count % request.grain != 0 ? 1 : 0));
    allocation.finish(before);
    if (best.seconds >= (1 - kGainWorthMoving) * before.seconds) {
      plan.gain = std::max(0.0, 1 - best.seconds / before.seconds);
      best = std::move(before);
    }
  }
  for (std::size_t i = 0; i < best.units.size(); ++i) plan.counts[i] = best.units[i] * request.grain;
  const auto last = std::find_if(plan.counts.rbegin(), plan.counts.rend(), [](std::uint64_t n) { return n > 0; });
  MOTLEY_ASSERT(last != plan.counts.rend());
  *last -= units * request.grain - request.total;
  if (mean_per_sample(candidates) > 0) plan.seconds = best.seconds;
  return plan;
}

}  // namespace motley::plan
