#pragma once
// Which slices of a round workers may have whose samples are not all there. A slice is one piece of the round's
// positions, so that a worker that lacks some has one at the beginning or at the end of them, or none. Pure.

#include <cstdint>
#include <span>
#include <vector>

#include "base/batch_plan.h"
#include "fleet/member.h"
#include "modes/work/interval_set.h"

namespace motley::modes {

/// Of a round's positions, in their order: those that a worker has from the first one on, and those up to the last one.
struct Reach {
  std::uint64_t front = 0, back = 0, total = 0;

  [[nodiscard]] bool whole() const noexcept { return front == total; }
  /// It has more at the beginning than at the end.
  [[nodiscard]] bool at_front() const noexcept { return !whole() && front >= back; }
  [[nodiscard]] std::uint64_t most() const noexcept { return std::max(front, back); }
  [[nodiscard]] Interval interval() const noexcept {
    return whole() || front >= back ? Interval{0, front} : Interval{total - back, back};
  }
};

/// `parts`: what the positions of the round stand for.
[[nodiscard]] Reach reach(const fleet::Stock& stock, std::span<const StepRange> parts) noexcept;

/// Who comes before whom in the round, by their numbers in `reaches`: those with its beginning, those with all of it,
/// those with its end.
[[nodiscard]] std::vector<std::size_t> placed(std::span<const Reach> reaches);
/// Moves boundaries so that who lacks something has no more than its reach, in multiples of `unit`. `counts` and
/// `reaches` are in the order of placed(), and somebody has all.
void fit(std::span<std::uint64_t> counts, std::span<const Reach> reaches, std::uint64_t unit) noexcept;

}  // namespace motley::modes
