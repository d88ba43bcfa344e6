#pragma once
// Leases of a pass that were granted before it opened, at the version before its own. What is made of one counts with
// all of its chunks or not at all. Pure.

#include <algorithm>

#include "modes/event.h"
#include "modes/work/lease.h"

namespace motley::modes {

/// False where that is not what was granted. REQUIRES a lease that is early and granted.
[[nodiscard]] inline bool note_early(Lease& lease, const LeaseBegun& event) {
  if (event.range != lease.range) return false;  // a part of it is of no use
  lease.weight = event.weight;
  lease.loss_sum = event.loss_sum;
  lease.state.enter(LeaseState::begun);
  return true;
}

/// REQUIRES a lease that is early and live.
inline void note_early(Lease& lease, const ChunkArrived& event) {
  lease.largest = {std::max(lease.largest.gradient, event.largest.gradient),
                   std::max(lease.largest.statistic, event.largest.statistic)};
  lease.chunks.at(event.chunk) = Lease::ChunkState::early;
}

[[nodiscard]] inline bool is_whole(const Lease& lease) {
  return lease.state == LeaseState::begun && lease.all_arrived();
}

}  // namespace motley::modes
