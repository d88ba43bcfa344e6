#pragma once
// What the driver knows of speeds, as far as it decides how work is cut. Must be a function of what it was told, so
// that a run can be replayed.

#include <cstdint>
#include <span>

#include "base/time.h"
#include "fleet/speeds.h"
#include "motley/task.h"

namespace motley::modes {

using fleet::WorkerId;

class PerformanceModel : public fleet::Speeds {
 public:
  using Verdict = fleet::Verdict;
  /// Fills counts (as many as workers) so that they sum to `total`. `reissue`: of lost positions, not of a new pass.
  virtual void split(PassKind kind, std::uint64_t total, std::span<const WorkerId> workers, bool reissue,
                     std::span<std::uint64_t> counts) = 0;
  /// How long `worker` may take for `samples` before its lease is overdue.
  [[nodiscard]] virtual Duration allowance(PassKind kind, WorkerId worker, std::uint64_t samples) const = 0;
  /// Whether that is guessed: nothing was measured of its leases yet.
  [[nodiscard]] virtual bool guesses(PassKind, WorkerId) const { return false; }
  /// Likewise while nothing is heard of it; not longer.
  [[nodiscard]] virtual Duration unheard_allowance(PassKind kind, WorkerId worker, std::uint64_t samples) const = 0;
  /// How long others wait for it at the most.
  [[nodiscard]] virtual Duration deadline(PassKind kind, WorkerId worker, std::uint64_t samples) const {
    return allowance(kind, worker, samples);
  }
  /// A lease of a train pass under way.
  struct Part {
    WorkerId worker = 0;
    std::uint64_t limit = 0, ceiling = 0;             // samples promised, and how many it might be
    std::uint64_t first_samples = 0, samples = 0;     // done by its first and by its newest report; 0: none came yet
    Duration first_after{}, newest_after{}, after{};  // since the grant: when these came, and now
  };
  /// Whole micro-batches of `worker`, on the grain: what can be moved of its share. 0: nothing.
  [[nodiscard]] virtual std::uint64_t unit(WorkerId worker) const = 0;
  /// Samples that `late` should leave to `early`, so that the later of both is done sooner; 0: not worth it.
  [[nodiscard]] virtual std::uint64_t shift(const Part& late, const Part& early) const = 0;
  /// Likewise where the idle `helper` has a contribution more to make for it.
  [[nodiscard]] virtual std::uint64_t relief(const Part& late, WorkerId helper, Duration pass_age) const = 0;
};

}  // namespace motley::modes
