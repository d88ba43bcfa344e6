#include "plan/verdicts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "plan/shares.h"

namespace motley::plan {
namespace {

constexpr double kLeastGain = 0.01;  // of a pass, for which a worker is worth its energy
// Passes whose mean is compared: the more of them, the smaller a loss is believed, and with the most any.
constexpr std::uint32_t kCompared = 16, kComparedLeast = 3;
constexpr double kDoubt = 0.2;  // what the mean of n is believed to be off by at the most: kDoubt (1/√n - 1/√kCompared)
constexpr double kClearGain = 1.25;  // over one worker alone, where none was measured: no need to compare

}  // namespace

Verdict judge(const Request& request, std::span<const Candidate> candidates, const Candidate& mine,
              std::optional<double> alone) {
  MOTLEY_ASSERT(measured(candidates) && mine.time);
  std::vector<Candidate> all = allowing_for_spread(candidates);
  const Plan before = make_plan(request, all);
  const double without = std::min(before.seconds, alone.value_or(before.seconds));
  all.push_back(mine);
  const Plan with = make_plan(request, all);
  if (with.counts.back() > 0 && with.seconds <= (1 - kLeastGain) * without) return {};
  const auto others = static_cast<double>(senders(candidates, before.counts));
  double least = mine.remote ? (others + 1) * request.link_seconds : 0;
  for (Candidate& each : all) {  // if it did send, beside those that do
    if (mine.remote && each.remote) each.time->fixed += others * std::exchange(each.wait, 0);
  }
  least = std::max(least, all.back().time->seconds(static_cast<double>(request.grain)));
  least = std::max(least, make_plan({.total = request.total, .grain = request.grain}, all).seconds);
  return {.pays = false, .with = least, .without = without};
}

void Comparison::closed(double seconds, bool counts) noexcept {
  if (counts) ++passes_;
  const double newest = 1.0 / std::clamp(passes_, 1U, kCompared);
  seconds_ += newest * (seconds - seconds_);
}

Verdict Comparison::compare(std::uint64_t total, std::optional<double> alone, std::optional<double> computes) noexcept {
  if (passes_ < kComparedLeast) return {};
  const std::uint32_t passes = std::min(kCompared, passes_);
  const double doubt = kDoubt * (1 / std::sqrt(passes) - 1 / std::sqrt(kCompared));
  const double least = seconds_ / (1 + doubt);
  if (alone) {
    if (least <= *alone) return {};
    return {.pays = false, .with = seconds_, .without = *alone};
  }
  if (!computes) return {};
  if (passes < kCompared ? least <= *computes : kClearGain * seconds_ < *computes) return {};
  doubted_ = {seconds_, total};
  return {.pays = false};
}

Verdict Comparison::resolve(std::uint64_t total, std::optional<double> alone) const noexcept {
  if (!alone || doubted_.total != total || doubted_.seconds <= *alone) return {};
  return {.pays = false, .with = doubted_.seconds, .without = *alone};
}

}  // namespace motley::plan
