#include "plan/shares.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::plan {
namespace {

constexpr double kSpreadToDeviation = 1.25;  // of a normal distribution: mean distance to standard deviation
// A gain too small to move shares at once; below it the models cannot tell.
constexpr double kSmallGain = 0.01;
constexpr std::uint32_t kGainsLetGo = 4;

}  // namespace

std::vector<Candidate> allowing_for_spread(std::span<const Candidate> candidates) {
  std::vector<Candidate> safe(candidates.begin(), candidates.end());
  double speed = 0;
  for (const Candidate& each : safe)
    if (each.time) speed += 1 / each.time->per_sample;
  for (Candidate& each : safe) {
    if (!each.time) continue;
    const double part = 1 / each.time->per_sample / speed;
    const double deviations = 3 * (0.5 - part);  // the quantile of a normal distribution, as a straight line
    if (deviations <= 0) continue;
    const double spread = kSpreadToDeviation * each.spread;
    each.time->fixed *= 1 + deviations * spread;
    each.time->per_sample *= 1 + deviations * spread;
  }
  return safe;
}

bool measured(std::span<const Candidate> candidates) noexcept {
  return std::ranges::all_of(candidates, [](const Candidate& each) { return each.time.has_value(); });
}

std::size_t senders(std::span<const Candidate> candidates, std::span<const std::uint64_t> counts) noexcept {
  std::size_t sending = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (counts[i] > 0 && candidates[i].remote) ++sending;
  return sending;
}

double expected_seconds(double link_seconds, std::span<const Candidate> candidates,
                        std::span<const std::uint64_t> counts) noexcept {
  const auto sending = static_cast<double>(senders(candidates, counts));
  double slowest = sending * link_seconds;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (counts[i] == 0) continue;
    const Candidate& each = candidates[i];
    if (!each.time) return 0;
    const double wait = each.remote ? each.wait * (sending - 1) : 0;
    slowest = std::max(slowest, wait + each.time->seconds(static_cast<double>(counts[i])));
  }
  return slowest;
}

void round_shares(std::span<std::uint64_t> counts, std::span<const std::uint64_t> units, std::uint64_t grain) noexcept {
  if (std::ranges::none_of(units, [](std::uint64_t unit) { return unit > 1; })) return;
  std::size_t rest = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const bool freer = units[i] == 1 && units[rest] > 1, as_free = (units[i] == 1) == (units[rest] == 1);
    if (counts[i] > 0 && (counts[rest] == 0 || freer || (as_free && counts[i] > counts[rest]))) rest = i;
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i == rest || units[i] == 1 || counts[i] % grain != 0) continue;
    const std::uint64_t over = counts[i] % units[i], missing = units[i] - over;
    if (over == 0) continue;
    if (missing < over && counts[rest] > missing) {
      counts[i] += missing;
      counts[rest] -= missing;
    } else if (counts[i] > over) {
      counts[i] -= over;
      counts[rest] += over;
    }
  }
}

Plan Shares::split(const Request& request, std::span<const Candidate> candidates,
                   std::span<const std::uint64_t> workers, bool again) {
  MOTLEY_ASSERT(candidates.size() == workers.size());
  const std::vector<Candidate> safe = allowing_for_spread(candidates);
  if (again) return make_plan(request, safe);
  const bool comparable = request.total == total_ && std::ranges::equal(workers, workers_);
  Plan plan =
      make_plan(request, safe, comparable ? std::span<const std::uint64_t>(counts_) : std::span<const std::uint64_t>());
  gains_let_go_ = plan.gain < kSmallGain ? 0 : gains_let_go_ + 1;
  if (gains_let_go_ > kGainsLetGo) {
    gains_let_go_ = 0;
    plan = make_plan(request, safe);
  }
  total_ = request.total;
  workers_.assign(workers.begin(), workers.end());
  counts_ = plan.counts;
  return plan;
}

}  // namespace motley::plan
