#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"
#include "base/format.h"

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
  std::uint64_t most = 0;
  bool remote = false;
  double wait = 0;

  /// With so many remote workers that have a share.
  [[nodiscard]] double fixed_among(std::size_t remotes) const noexcept {
    return remote && remotes > 1 ? fixed + wait * static_cast<double>(remotes - 1) : fixed;
  }
  [[nodiscard]] double seconds(std::uint64_t units, std::size_t remotes) const noexcept {
    return units == 0 ? 0 : fixed_among(remotes) + per_unit * static_cast<double>(units);
  }
  /// Units it finishes within `limit` seconds.
  [[nodiscard]] std::uint64_t within(double limit, std::size_t remotes) const noexcept {
    const double units = (limit - fixed_among(remotes)) / per_unit;
    if (!(units >= 1)) return 0;
    return units >= static_cast<double>(most) ? most : static_cast<std::uint64_t>(units);
  }
};

struct Shares {
  std::vector<std::uint64_t> units;
  double seconds = 0;
  bool link_bound = false;
};

class Allocation {
 public:
  Allocation(const Request& request, std::vector<Worker> workers, std::uint64_t units)
      : workers_(std::move(workers)), link_seconds_(request.link_seconds), units_(units), capacity_(workers_.size()) {}

  /// REQUIRES the caps leave room for all units.
  Shares best() {
    const auto remote_all =
        static_cast<std::size_t>(std::ranges::count_if(workers_, [](const Worker& worker) { return worker.remote; }));
    const bool shared = link_seconds_ > 0 ||
                        std::ranges::any_of(workers_, [](const Worker& each) { return each.remote && each.wait > 0; });
    std::size_t remote = shared ? 0 : remote_all;
    while (!room(remote)) ++remote;
    Shares found = with_remote(remote);
    // More remote workers end the computing sooner and keep the link busy longer.
    while (++remote <= remote_all) {
      if (done_within(found.seconds, remote) < units_) continue;
      Shares more = with_remote(remote);
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
      capacity_[i] = std::min(workers_[i].within(limit, remote), units_);
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

  bool room(std::size_t remote) { return done_within(std::numeric_limits<double>::infinity(), remote) >= units_; }

  Shares with_remote(std::size_t remote) {
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
    Shares shares{.units = capacity_};
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
  void finish(Shares& shares) const noexcept {
    std::size_t remote = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].remote && shares.units[i] > 0) ++remote;
    double computed = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      computed = std::max(computed, workers_[i].seconds(shares.units[i], remote));
    const double link = static_cast<double>(remote) * link_seconds_;
    shares.link_bound = link > computed;
    shares.seconds = std::max(computed, link);
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

std::vector<Worker> in_units(const Request& request, std::span<const Candidate> candidates, std::uint64_t units) {
  const double mean = mean_per_sample(candidates);
  const auto grain = static_cast<double>(request.grain);
  std::vector<Worker> workers;
  for (const Candidate& candidate : candidates) {
    Worker worker{.fixed = 0,
                  .per_unit = grain,
                  .most = candidate.most / request.grain,
                  .remote = candidate.remote,
                  .wait = candidate.wait};
    if (usable(candidate.time)) {
      worker.fixed = candidate.time->fixed;
      worker.per_unit = candidate.time->per_sample * grain;
    } else if (mean > 0) {
      worker.per_unit = kUnmeasuredSlowness * mean * grain;
    }
    worker.most = std::min(worker.most, units);
    workers.push_back(worker);
  }
  return workers;
}

bool fits(std::span<const std::uint64_t> counts, const Request& request, std::span<const Candidate> candidates) {
  if (counts.size() != candidates.size()) return false;
  std::uint64_t sum = 0;
  bool partial = false;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > request.total - sum || counts[i] > candidates[i].most) return false;
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
  std::vector<Worker> workers = in_units(request, candidates, units);
  std::uint64_t room = 0;
  for (const Worker& worker : workers) room += std::min(worker.most, units - std::min(room, units));
  const bool capped = room < units;
  if (capped)
    for (Worker& worker : workers) worker.most = units;
  Allocation allocation(request, workers, units);
  Shares best = allocation.best();

  const bool measured = mean_per_sample(candidates) > 0;
  plan.why = capped ? Plan::Why::capped : measured ? Plan::Why::shared : Plan::Why::unmeasured;
  const bool settled = std::ranges::all_of(candidates, [](const Candidate& each) { return usable(each.time); });
  if (settled && fits(previous, request, candidates)) {
    Shares before;
    for (const std::uint64_t count : previous)
      before.units.push_back(count / request.grain + (count % request.grain != 0 ? 1 : 0));
    allocation.finish(before);
    if (best.seconds >= (1 - kGainWorthMoving) * before.seconds) {
      plan.gain = std::max(0.0, 1 - best.seconds / before.seconds);
      best = std::move(before);
      plan.why = Plan::Why::kept;
    }
  }
  for (std::size_t i = 0; i < best.units.size(); ++i) plan.counts[i] = best.units[i] * request.grain;
  const auto last = std::find_if(plan.counts.rbegin(), plan.counts.rend(), [](std::uint64_t n) { return n > 0; });
  MOTLEY_ASSERT(last != plan.counts.rend());
  *last -= units * request.grain - request.total;
  plan.seconds = measured ? best.seconds : 0;
  plan.link_bound = best.link_bound;
  return plan;
}

std::string sentence(const Plan& plan, std::span<const Candidate> candidates, std::span<const std::string> names) {
  MOTLEY_ASSERT(names.size() == plan.counts.size() && names.size() == candidates.size());
  if (plan.why == Plan::Why::unmeasured) return "equal shares: nothing is measured yet";
  const std::uint64_t total = std::accumulate(plan.counts.begin(), plan.counts.end(), std::uint64_t{0});
  std::string result = plan.why == Plan::Why::kept ? "shares stay: a change would gain less than 3 %"
                       : plan.why == Plan::Why::capped
                           ? "the caps leave too little room for the batch, so they are lifted"
                           : "everybody who helps has a share";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double share = total == 0 ? 0 : static_cast<double>(plan.counts[i]) / static_cast<double>(total);
    result.append(i == 0 ? ": " : ", ").append(names[i]).append(" ");
    if (plan.counts[i] > 0) {
      result += formatted("%.0f %%", 100 * share);
    } else if (candidates[i].time) {
      result += "nothing (it needs" + formatted(" %.0f ms", 1e3 * candidates[i].time->seconds(1)) + " at the least)";
    } else {
      result += "nothing";
    }
  }
  return result + formatted("; a pass takes %.1f ms", 1e3 * plan.seconds) +
         (plan.link_bound ? ", as long as the gradients take on the coordinator's link" : "");
}

}  // namespace motley::plan
