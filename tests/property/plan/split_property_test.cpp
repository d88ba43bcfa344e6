#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/split.h"

namespace motley::plan {
namespace {

using Speeds = std::vector<std::optional<double>>;

double any_speed() { return *rc::gen::inRange(1, 1000) * (*rc::gen::inRange(0, 2) == 0 ? 1.0 : 0.013); }

Speeds any_speeds(int workers_max) {
  Speeds speeds;
  const int workers = *rc::gen::inRange(1, workers_max + 1);
  for (int i = 0; i < workers; ++i) {
    const bool measured = *rc::gen::inRange(0, 5) > 0;
    speeds.push_back(measured ? std::optional(any_speed()) : std::nullopt);
  }
  return speeds;
}

void check_shape(const std::vector<std::uint64_t>& counts, std::uint64_t total, std::uint64_t grain,
                 std::size_t workers) {
  RC_ASSERT(counts.size() == workers);
  RC_ASSERT(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) == total);
  bool partial = false;
  for (const std::uint64_t count : counts) {
    if (count == 0) continue;
    RC_ASSERT(!partial);
    partial = count % grain != 0;
  }
}

/// The least finish time of whole units over all ways to hand them out.
double best_finish(std::uint64_t units, std::span<const double> speeds) {
  if (speeds.size() == 1) return static_cast<double>(units) / speeds[0];
  double best = std::numeric_limits<double>::infinity();
  for (std::uint64_t own = 0; own <= units; ++own) {
    const double mine = static_cast<double>(own) / speeds[0];
    if (mine < best) best = std::min(best, std::max(mine, best_finish(units - own, speeds.subspan(1))));
  }
  return best;
}

RC_GTEST_PROP(SplitProperties, SumsToTheTotalOnTheGrain, ()) {
  const Speeds speeds = any_speeds(8);
  const auto total = *rc::gen::inRange<std::uint64_t>(0, 100'000);
  const auto grain = *rc::gen::inRange<std::uint64_t>(1, 100);
  const Shares shares = split(total, grain, speeds);
  check_shape(shares.counts, total, grain, speeds.size());
  RC_ASSERT(!shares.reason.empty());
  // What it made itself always fits and is never worth changing.
  const Shares again = split(total, grain, speeds, shares.counts);
  RC_ASSERT(again.counts == shares.counts);
}

RC_GTEST_PROP(SplitProperties, FinishesAsEarlyAsAnySplitOfWholeUnits, ()) {
  const auto workers = *rc::gen::inRange(1, 5);
  std::vector<double> known;
  for (int i = 0; i < workers; ++i) known.push_back(any_speed());
  const auto units = *rc::gen::inRange<std::uint64_t>(0, 14);
  const std::uint64_t grain = 32;
  const Shares shares = split(units * grain, grain, Speeds(known.begin(), known.end()));
  double finish = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    finish = std::max(finish, static_cast<double>(shares.counts[i] / grain) / known[i]);
  }
  RC_ASSERT(finish <= best_finish(units, known) * (1 + 1e-12));
}

RC_GTEST_PROP(SplitProperties, IsNeverSlowerThanTheFastestAlone, ()) {
  const auto workers = *rc::gen::inRange(1, 8);
  std::vector<double> known;
  for (int i = 0; i < workers; ++i) known.push_back(any_speed());
  const auto total = *rc::gen::inRange<std::uint64_t>(1, 5000);
  const std::uint64_t grain = *rc::gen::inRange<std::uint64_t>(1, 64);
  const Shares shares = split(total, grain, Speeds(known.begin(), known.end()));
  const double alone =
      static_cast<double>((total + grain - 1) / grain * grain) / *std::max_element(known.begin(), known.end());
  for (std::size_t i = 0; i < known.size(); ++i) {
    RC_ASSERT(static_cast<double>(shares.counts[i]) / known[i] <= alone * (1 + 1e-12));
  }
}

RC_GTEST_PROP(SplitProperties, ChangesOnlyForAGainWorthIt, ()) {
  const auto workers = static_cast<std::size_t>(*rc::gen::inRange(1, 6));
  std::vector<double> before;
  std::vector<double> after;
  for (std::size_t i = 0; i < workers; ++i) {
    before.push_back(any_speed());
    after.push_back(before.back() * (1 + 0.01 * *rc::gen::inRange(-20, 21)));
  }
  const auto total = *rc::gen::inRange<std::uint64_t>(1, 20'000);
  const std::uint64_t grain = 32;
  const auto previous = split(total, grain, Speeds(before.begin(), before.end())).counts;
  const Shares shares = split(total, grain, Speeds(after.begin(), after.end()), previous);
  check_shape(shares.counts, total, grain, workers);
  const auto finish = [&after](const std::vector<std::uint64_t>& counts) {
    double latest = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      latest = std::max(latest, static_cast<double>(counts[i]) / after[i]);
    return latest;
  };
  if (shares.counts != previous) RC_ASSERT(finish(shares.counts) < 0.97 * finish(previous) * (1 + 1e-9));
}

}  // namespace
}  // namespace motley::plan
