#include "engine/coordinator_pace.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::engine {

std::optional<double> MeasuredPace::speed(const Kind& kind, cluster::WorkerId worker) const {
  if (!fixed_.empty()) {
    if (worker <= fixed_.size()) return fixed_[worker - 1];
    double sum = 0;
    for (const double share : fixed_) sum += share;
    return sum / static_cast<double>(fixed_.size());  // nobody gave a share to those who came later
  }
  if (worker > kind.speeds.size()) return std::nullopt;
  return kind.speeds[worker - 1].samples_per_second();
}

void MeasuredPace::split(PassKind kind, std::uint64_t total, std::span<const cluster::WorkerId> workers, bool reissue,
                         std::span<std::uint64_t> counts) {
  MOTLEY_ASSERT(!workers.empty() && workers.size() == counts.size());
  Kind& known = of(kind);
  rates_.clear();
  for (const cluster::WorkerId worker : workers) rates_.push_back(speed(known, worker));
  const bool comparable =
      !reissue && fixed_.empty() && total == known.total && std::ranges::equal(workers, known.workers);
  const plan::Shares shares =
      plan::split(total, grain_, rates_,
                  comparable ? std::span<const std::uint64_t>(known.counts) : std::span<const std::uint64_t>());
  MOTLEY_ASSERT(shares.counts.size() == counts.size());
  std::ranges::copy(shares.counts, counts.begin());
  if (reissue) return;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (counts[i] == 0 && workers[i] <= known.speeds.size()) known.speeds[workers[i] - 1].idle();
  }
  known.total = total;
  known.workers.assign(workers.begin(), workers.end());
  known.counts.assign(counts.begin(), counts.end());
}

Duration MeasuredPace::allowance(PassKind kind, cluster::WorkerId worker, std::uint64_t samples) const {
  const Kind& known = of(kind);
  if (worker > known.speeds.size()) return timeouts_.lease_unknown;
  const std::optional<Duration> predicted = known.speeds[worker - 1].predict(samples);
  return predicted ? std::max<Duration>(timeouts_.lease_min, 3 * *predicted) : timeouts_.lease_unknown;
}

void MeasuredPace::record(PassKind kind, cluster::WorkerId worker, std::uint64_t samples, Duration elapsed) {
  Kind& known = of(kind);
  if (known.speeds.size() < worker) known.speeds.resize(worker);
  known.speeds[worker - 1].record(samples, elapsed);
}

}  // namespace motley::engine
