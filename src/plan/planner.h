#pragma once
// How a pass is shared out so that it ends as early as possible. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/time_model.h"

namespace motley::plan {

/// A worker as the planner sees it.
struct Candidate {
  // Of a pass, waiting for the wire included, where no other remote worker has a share; empty: not measured yet.
  std::optional<Affine> time;
  bool remote = false;  // its gradient comes in through the coordinator's link
  double wait = 0;      // if it is remote: seconds more for each other remote worker with a share
  double spread = 0;    // how much its passes vary; see allowing_for_spread()
};

struct Request {
  std::uint64_t total = 0;  // samples of the pass
  std::uint64_t grain = 1;  // counts are multiples of it
  double link_seconds = 0;  // the coordinator's link is busy so long with the gradient of one remote worker
};

struct Plan {
  std::vector<std::uint64_t> counts;  // sum to the total; every count but the last non-zero one is a multiple of grain
  double seconds = 0;                 // until the last worker is done; 0: unknown
  double gain = 0;                    // where shares are kept: the part of the pass that a change would have saved
};

/// Minimises max over i of t_i(b_i), t_i(b) = fixed_i + per_sample_i · b for b > 0 and 0 for b = 0, subject to
/// sum b_i = total and, for k remote workers with a share, a time of at least k · link_seconds, where
/// fixed_i of each of these is longer by (k - 1) · wait_i (min-max allocation by bisection on the finish time, for each
/// k; exact on whole grains). Whoever would lengthen the pass has a count of zero. A candidate not measured yet gets
/// about a quarter of what the measured ones get on average. `previous`, when it fits and everybody is measured, is
/// kept unless the pass ends more than 3 % sooner. REQUIRES candidates not empty, grain > 0, models with per_sample > 0
/// and fixed >= 0.
Plan make_plan(const Request& request, std::span<const Candidate> candidates,
               std::span<const std::uint64_t> previous = {});

}  // namespace motley::plan
