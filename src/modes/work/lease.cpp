#include "modes/work/lease.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::modes {

void LeaseMachine::enter(LeaseState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

bool LeaseMachine::may_follow(LeaseState from, LeaseState to) noexcept {
  switch (from) {
    case LeaseState::granted:
      return to == LeaseState::begun || to == LeaseState::ended;
    case LeaseState::begun:
      return to == LeaseState::ended;
    case LeaseState::ended:
      return false;
  }
  return false;
}

Lease& LeaseTable::add(LeaseId id, SessionId session, WorkerId worker, Interval range, std::uint32_t chunks) {
  MOTLEY_ASSERT(range.count > 0 && chunks > 0);
  if (used_ == leases_.size()) leases_.emplace_back();
  Lease& lease = leases_[used_++];
  std::vector<Lease::ChunkState> memory = std::move(lease.chunks);
  memory.assign(chunks, Lease::ChunkState::awaited);
  lease = Lease{.id = id,
                .session = session,
                .worker = worker,
                .range = range,
                .boundary = {.ceiling = range},
                .chunks = std::move(memory)};
  return lease;
}

Lease* LeaseTable::find(LeaseId id) noexcept {
  for (Lease& lease : all())
    if (lease.id == id) return &lease;
  return nullptr;
}

const Lease* LeaseTable::find(LeaseId id) const noexcept {
  for (const Lease& lease : all())
    if (lease.id == id) return &lease;
  return nullptr;
}

bool LeaseTable::has_live(SessionId session) const noexcept {
  return std::any_of(all().begin(), all().end(), [&](const Lease& l) { return l.session == session && l.live(); });
}

std::uint64_t LeaseTable::outstanding(SessionId session) const noexcept {
  std::uint64_t sum = 0;
  for (const Lease& lease : all())
    if (lease.session == session && lease.live()) sum += lease.range.count;
  return sum;
}

bool LeaseTable::has_overdue(SessionId session) const noexcept {
  return std::any_of(all().begin(), all().end(),
                     [&](const Lease& l) { return l.session == session && l.live() && l.due.passed; });
}

}  // namespace motley::modes
