#pragma once
// How a round is cut over its workers, and how a slice is granted. One thread at a time.

#include <cstdint>
#include <vector>

#include "modes/rounds/round_plan.h"
#include "modes/rounds/suspects.h"
#include "modes/run.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class RoundSlices {
 public:
  /// REQUIRES both outlive this.
  RoundSlices(Run& run, const Suspects& suspects) : run_(run), suspects_(suspects) {}

  /// Who has a part in it.
  [[nodiscard]] std::vector<fleet::Member*> members(Time now);
  /// The slice of each of them.
  [[nodiscard]] std::vector<Interval> cut(const OpenPass& of, const std::vector<fleet::Member*>& members);
  /// As much of it as one lease may have.
  [[nodiscard]] Interval leasable(const OpenPass& of, Interval wanted) const noexcept;
  Action& say_grant(const OpenPass& of, const fleet::Member& to, LeaseId lease, Interval slice);
  /// Every local step of a slice has the same number of groups.
  [[nodiscard]] std::uint64_t unit(const OpenPass& of) const noexcept { return of.local_steps * run_.config.grain; }

 private:
  [[nodiscard]] StepRange in_order(const Owed& part) const;

  Run& run_;
  const Suspects& suspects_;
};

}  // namespace motley::modes
