#include "plan/planner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace motley::plan {
namespace {

using Counts = std::vector<std::uint64_t>;

Affine any_affine() {
  const double per_sample = *rc::gen::inRange(1, 1000) * (*rc::gen::inRange(0, 2) == 0 ? 1e-3 : 1e-5);
  const double fixed = *rc::gen::inRange(0, 3) == 0 ? 0 : *rc::gen::inRange(1, 200) * per_sample;
  return {fixed, per_sample};
}

std::vector<Candidate> any_candidates(std::size_t most, bool measured_only) {
  std::vector<Candidate> candidates(*rc::gen::inRange<std::size_t>(1, most + 1));
  for (Candidate& each : candidates) {
    if (measured_only || *rc::gen::inRange(0, 5) > 0) each.time = any_affine();
    each.remote = *rc::gen::inRange(0, 2) == 0;
    if (*rc::gen::inRange(0, 2) == 0) each.wait = *rc::gen::inRange(0, 100) * 1e-3;
  }
  return candidates;
}

double finish(const Request& request, std::span<const Candidate> candidates, std::span<const std::uint64_t> units) {
  double remotes = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (units[i] > 0 && candidates[i].remote) ++remotes;
  double latest = remotes * request.link_seconds;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (units[i] == 0) continue;
    const double wait = candidates[i].remote ? (remotes - 1) * candidates[i].wait : 0;
    latest = std::max(latest, wait + candidates[i].time->seconds(static_cast<double>(units[i] * request.grain)));
  }
  return latest;
}

/// The least finish time over all ways to hand out `left` whole units from candidate `at` on;
double brute_force(const Request& request, std::span<const Candidate> candidates, Counts& units, std::size_t at,
                   std::uint64_t left) {
  const bool last = at + 1 == candidates.size();
  double best = std::numeric_limits<double>::infinity();
  for (std::uint64_t own = last ? left : 0; own <= left; ++own) {
    units[at] = own;
    best = std::min(
        best, last ? finish(request, candidates, units) : brute_force(request, candidates, units, at + 1, left - own));
  }
  return best;
}

Counts in_units(const Plan& plan, std::uint64_t grain) {
  Counts units;
  for (const std::uint64_t count : plan.counts) units.push_back((count + grain - 1) / grain);
  return units;
}

RC_GTEST_PROP(PlannerProperties, SumsToTheTotalOnTheGrain, ()) {
  const auto candidates = any_candidates(8, false);
  const Request request{.total = *rc::gen::inRange<std::uint64_t>(0, 100'000),
                        .grain = *rc::gen::inRange<std::uint64_t>(1, 100),
                        .link_seconds = *rc::gen::inRange(0, 2) * 1e-3};
  const Plan plan = make_plan(request, candidates);
  RC_ASSERT(plan.counts.size() == candidates.size());
  RC_ASSERT(std::accumulate(plan.counts.begin(), plan.counts.end(), std::uint64_t{0}) == request.total);
  bool partial = false;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (plan.counts[i] == 0) continue;
    RC_ASSERT(!partial);
    partial = plan.counts[i] % request.grain != 0;
  }
  // What it made itself always fits and is never worth changing.
  RC_ASSERT(make_plan(request, candidates, plan.counts).counts == plan.counts);
}

RC_GTEST_PROP(PlannerProperties, EndsAsEarlyAsAnySplitOfWholeUnits, ()) {
  const auto candidates = any_candidates(4, true);
  const std::uint64_t grain = 32;
  const Request request{.total = *rc::gen::inRange<std::uint64_t>(1, 12) * grain,
                        .grain = grain,
                        .link_seconds = *rc::gen::inRange(0, 3) * *rc::gen::inRange(1, 1000) * 1e-4};
  Counts units(candidates.size());
  const double best = brute_force(request, candidates, units, 0, request.total / grain);
  const Plan plan = make_plan(request, candidates);
  const double made = finish(request, candidates, in_units(plan, grain));
  RC_ASSERT(made <= best * (1 + 1e-12));
  RC_ASSERT(std::abs(plan.seconds - made) <= 1e-9 * made);
}

RC_GTEST_PROP(PlannerProperties, IsNeverSlowerThanTheFastestAlone, ()) {
  const auto candidates = any_candidates(8, true);
  const Request request{.total = *rc::gen::inRange<std::uint64_t>(1, 5000),
                        .grain = *rc::gen::inRange<std::uint64_t>(1, 64),
                        .link_seconds = *rc::gen::inRange(0, 100) * 1e-3};
  const double whole = static_cast<double>((request.total + request.grain - 1) / request.grain * request.grain);
  double alone = std::numeric_limits<double>::infinity();
  for (const Candidate& each : candidates)
    alone = std::min(alone, std::max(each.time->seconds(whole), each.remote ? request.link_seconds : 0));
  RC_ASSERT(make_plan(request, candidates).seconds <= alone * (1 + 1e-12));
}

RC_GTEST_PROP(PlannerProperties, LeavesOutWhoWouldLengthenThePass, ()) {
  auto candidates = any_candidates(8, true);
  const Request request{.total = *rc::gen::inRange<std::uint64_t>(1, 5000),
                        .grain = *rc::gen::inRange<std::uint64_t>(1, 64),
                        .link_seconds = *rc::gen::inRange(0, 1000) * 1e-3};
  const double all = make_plan(request, candidates).seconds;
  if (candidates.size() == 1) return;
  candidates.erase(candidates.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(candidates)));
  RC_ASSERT(all <= make_plan(request, candidates).seconds * (1 + 1e-12));
}

RC_GTEST_PROP(PlannerProperties, ChangesOnlyForAGainWorthIt, ()) {
  auto candidates = any_candidates(6, true);
  const Request request{.total = *rc::gen::inRange<std::uint64_t>(1, 20'000), .grain = 32, .link_seconds = 0};
  const Counts previous = make_plan(request, candidates).counts;
  for (Candidate& each : candidates) {
    each.time->fixed *= 1 + 0.01 * *rc::gen::inRange(-20, 21);
    each.time->per_sample *= 1 + 0.01 * *rc::gen::inRange(-20, 21);
  }
  const Plan plan = make_plan(request, candidates, previous);
  if (plan.counts == previous) return;
  Counts before;
  for (const std::uint64_t count : previous) before.push_back((count + 31) / 32);
  RC_ASSERT(plan.seconds < 0.97 * finish(request, candidates, before) * (1 + 1e-9));
}

}  // namespace
}  // namespace motley::plan
