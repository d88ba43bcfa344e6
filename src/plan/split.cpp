#include "plan/split.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <numeric>

#include "base/assert.h"

namespace motley::plan {
namespace {

// A change of shares costs a step or two of unsettled measurements, so small gains are not worth it.
constexpr double kGainWorthMoving = 0.03;
// Samples per second beyond any device; keeps the sum of speeds finite.
constexpr double kSpeedMax = 1e18;

struct Weighted {
  std::vector<double> speeds;  // >= 0, at least one > 0
  std::size_t measured = 0;
};

bool usable(const std::optional<double>& speed) noexcept { return speed && *speed > 0 && *speed <= kSpeedMax; }

Weighted fill_in(std::span<const std::optional<double>> speeds) {
  Weighted result;
  double sum = 0;
  for (const auto& speed : speeds) {
    if (!usable(speed)) continue;
    sum += *speed;
    ++result.measured;
  }
  const double mean = result.measured > 0 ? sum / static_cast<double>(result.measured) : 1.0;
  for (const auto& speed : speeds) result.speeds.push_back(usable(speed) ? *speed : mean);
  return result;
}

/// Time until the last worker is done, in seconds.
double finish_time(std::span<const std::uint64_t> counts, const std::vector<double>& speeds) noexcept {
  double latest = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    latest = std::max(latest, static_cast<double>(counts[i]) / speeds[i]);
  }
  return latest;
}

/// Units of grain in proportion to speed. Each unit left over by rounding down goes to the worker that would finish it
/// first, which makes the finish time the least possible; handing them out by largest remainder could give a slow
/// worker a whole unit that all others then wait for.
std::vector<std::uint64_t> proportional_units(std::uint64_t units, const std::vector<double>& speeds) {
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<std::uint64_t> shares;
  std::uint64_t given = 0;
  for (const double speed : speeds) {
    const double quota = static_cast<double>(units) * (speed / sum);
    // Rounding of the quotient must never hand out more than there is.
    const auto share = std::min(static_cast<std::uint64_t>(quota), units - given);
    shares.push_back(share);
    given += share;
  }
  for (; given < units; ++given) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < speeds.size(); ++i) {
      if (static_cast<double>(shares[i] + 1) * speeds[best] < static_cast<double>(shares[best] + 1) * speeds[i])
        best = i;
    }
    ++shares[best];
  }
  return shares;
}

bool fits(std::span<const std::uint64_t> counts, std::uint64_t total, std::uint64_t grain, std::size_t workers) {
  if (counts.size() != workers) return false;
  std::uint64_t sum = 0;
  bool partial = false;
  for (const std::uint64_t count : counts) {
    if (count > total - sum) return false;
    sum += count;
    if (count == 0) continue;
    if (partial) return false;  // only the last non-zero count may be cut short
    partial = count % grain != 0;
  }
  return sum == total;
}

std::string percent(double fraction) {
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.1f %%", fraction * 100);
  return {text.data(), static_cast<std::size_t>(std::max(length, 0))};
}

}  // namespace

Shares split(std::uint64_t total, std::uint64_t grain, std::span<const std::optional<double>> speeds,
             std::span<const std::uint64_t> previous) {
  MOTLEY_ASSERT(!speeds.empty());
  MOTLEY_ASSERT(grain > 0);
  const Weighted weighted = fill_in(speeds);
  const std::uint64_t units = total / grain + (total % grain != 0 ? 1 : 0);

  Shares shares;
  shares.counts = proportional_units(units, weighted.speeds);
  for (std::uint64_t& count : shares.counts) count *= grain;
  if (const std::uint64_t missing = units * grain - total; missing > 0) {
    const auto last =
        std::find_if(shares.counts.rbegin(), shares.counts.rend(), [](std::uint64_t count) { return count > 0; });
    MOTLEY_ASSERT(last != shares.counts.rend());
    *last -= missing;
  }
  MOTLEY_ASSERT(std::accumulate(shares.counts.begin(), shares.counts.end(), std::uint64_t{0}) == total);

  const bool comparable = fits(previous, total, grain, speeds.size());
  const double now = finish_time(shares.counts, weighted.speeds);
  const double before = comparable ? finish_time(previous, weighted.speeds) : 0;
  const double gain = before > 0 ? 1 - now / before : 0;
  if (comparable && gain <= kGainWorthMoving) {
    shares.counts.assign(previous.begin(), previous.end());
    shares.reason = "shares kept: a new split would finish " + percent(std::max(gain, 0.0)) +
                    " sooner, less than the " + percent(kGainWorthMoving) + " a change is worth";
  } else if (weighted.measured == 0) {
    shares.reason = "equal shares: no speed is measured yet";
  } else if (weighted.measured < speeds.size()) {
    shares.reason = "shares follow measured speed; " + std::to_string(speeds.size() - weighted.measured) +
                    " not measured yet take the mean";
  } else if (comparable) {
    shares.reason = "shares follow measured speed: the pass finishes " + percent(gain) + " sooner";
  } else {
    shares.reason = "shares follow measured speed";
  }
  return shares;
}

}  // namespace motley::plan
