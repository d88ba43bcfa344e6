#pragma once
// The shares of a pass, from one pass to the next. Pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/planner.h"

namespace motley::plan {

/// A worker whose time varies is to be done a little earlier, since the pass waits for the last one. The expected end
/// of the pass is least where each is the last one as often as its part of the work (the derivative of E[max] by a
/// shift of samples).
std::vector<Candidate> allowing_for_spread(std::span<const Candidate> candidates);

[[nodiscard]] bool measured(std::span<const Candidate> candidates) noexcept;

/// Remote ones with a share.
[[nodiscard]] std::size_t senders(std::span<const Candidate> candidates,
                                  std::span<const std::uint64_t> counts) noexcept;

/// Until the last of them is done; 0: somebody with a share is not measured yet.
[[nodiscard]] double expected_seconds(double link_seconds, std::span<const Candidate> candidates,
                                      std::span<const std::uint64_t> counts) noexcept;

/// Whose share is to be a multiple of more than 1 (`units`) gets the nearest one; the difference is that of the largest
/// share that may be anything. Where there is none, the largest of all keeps it. Nobody loses a whole share, and one
/// that is no multiple of `grain` stays. REQUIRES units that are not 1 are multiples of `grain`.
void round_shares(std::span<std::uint64_t> counts, std::span<const std::uint64_t> units, std::uint64_t grain) noexcept;

/// Of passes of one kind. Shares stay for small gains; one that was there many times in a row is no noise and is taken.
class Shares {
 public:
  /// REQUIRES candidates not empty, and as many as workers. `again`: of positions that were lost, not of a new pass.
  Plan split(const Request& request, std::span<const Candidate> candidates, std::span<const std::uint64_t> workers,
             bool again);
  /// Samples of the newest pass.
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

 private:
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> workers_, counts_;
  std::uint32_t gains_let_go_ = 0;  // splits in a row that were kept though a change would have gained a little
};

}  // namespace motley::plan
