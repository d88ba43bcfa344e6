#include "modes/work/doubts.h"

namespace motley::modes {

bool Doubts::arise(const Lease& lease, const Declared& said) {
  if (likely(lease, said)) return false;
  bool confirmed = false;
  for (PassWork::Avoid& avoid : work_.avoid) {
    if (!avoid.unlikely || !avoid.range.overlaps(lease.range)) continue;
    // Two say so: it is the samples. Or it is asked again, because nobody else is there.
    avoid.confirmed = true;
    confirmed = true;
  }
  if (confirmed) return false;
  work_.act(ActionKind::warn, {ReasonCode::unlikely, lease.worker, lease.range.first, lease.range.count});
  work_.avoid.push_back(
      {.range = lease.range, .worker = lease.worker, .unlikely = true, .undecided = undecided(lease, said)});
  return true;
}

void Doubts::learn() {
  for (const Coverage::Piece& piece : work_.coverage.pieces(0)) {
    const Contribution* part = work_.coverage.find(piece.lease);
    const Lease* lease = work_.leases.find(piece.lease);
    // Its first chunks may have counted before a later one was not believed.
    const bool refuted = lease != nullptr && work_.doubted(lease->range, lease->worker);
    if (part != nullptr && lease != nullptr && !refuted)
      bounds_.counted(lease->worker, {part->range.count, part->weight, part->loss_sum, lease->largest},
                      work_.run.roster.is_local(lease->worker));
  }
}

}  // namespace motley::modes
