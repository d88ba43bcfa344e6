#include "modes/exact/balance.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace motley::modes {
namespace {

PerformanceModel::Part part_of(const Lease& lease, Time now) noexcept {
  return {.worker = lease.worker,
          .limit = lease.range.count,
          .ceiling = lease.boundary.ceiling.count,
          .first_samples = lease.first.samples,
          .samples = lease.last.samples,
          .first_after = lease.first.at - lease.granted,
          .newest_after = lease.last.at - lease.granted,
          .after = now - lease.granted};
}

bool movable(const Lease& lease) noexcept {
  return lease.state == LeaseState::granted && !lease.due.passed && !lease.boundary.asked && !lease.doubt.compared;
}

/// The positions at the end of a lease that `samples` fewer leave free.
Interval handed(const Lease& lease, std::uint64_t samples) noexcept {
  return {lease.from_end ? lease.range.first : lease.range.end() - samples, samples};
}

}  // namespace

void Balance::progress(Lease& lease, const LeaseProgress& event, Time now) {
  const std::uint64_t done = std::min(event.done, lease.range.count);
  if (done > lease.last.samples) {
    lease.last = {done, now};
    lease.moves(now);
    if (lease.first.samples == 0) lease.first = lease.last;
    work_.balance = work_.training();
  }
  if (event.limit > 0 && event.trim == lease.boundary.trims && lease.boundary.asked &&
      lease.state == LeaseState::granted)
    answered(lease, event.limit, now);
}

void Balance::balance(Time now) {
  work_.balance = false;
  if (!work_.training() || run_.finished) return;
  for (Lease& low : work_.leases.all()) {
    Lease* high =
        low.boundary.partner == 0 || low.from_end || !movable(low) ? nullptr : work_.leases.find(low.boundary.partner);
    if (high != nullptr && movable(*high) && low.range.end() == high->range.first) move_boundary(low, *high, now);
  }
  for (const Member& member : run_.roster.all()) help(member, now);
}

void Balance::move_boundary(Lease& low, Lease& high, Time now) {
  for (const auto& [late, early] : {std::pair(&low, &high), std::pair(&high, &low)}) {
    const std::uint64_t samples = run_.performance.shift(part_of(*late, now), part_of(*early, now));
    if (samples == 0 || !takes_more(early, handed(*late, samples))) continue;
    return ask_back(*late, samples, 0);
  }
}

void Balance::help(const Member& idle, Time now) {
  if (idle.state != MemberState::member || work_.leases.has_live(idle.session)) return;
  bool worked = false;
  Lease* latest = nullptr;
  std::uint64_t most = 0;
  for (Lease& lease : work_.leases.all()) {
    worked = worked || lease.session == idle.session;
    if (lease.live() && lease.boundary.asked && lease.boundary.heir == idle.session) return;
    if (!movable(lease) || work_.avoids(idle.worker, lease.range)) continue;
    const std::uint64_t samples = run_.performance.relief(part_of(lease, now), idle.worker, now - work_.pass->opened);
    if (samples <= most) continue;
    most = samples;
    latest = &lease;
  }
  // Who has had no part in the pass may not hold its weights yet.
  if (worked && latest != nullptr) ask_back(*latest, most, idle.session);
}

void Balance::ask_back(Lease& lease, std::uint64_t samples, SessionId heir) {
  MOTLEY_ASSERT(samples < lease.range.count);
  lease.boundary.asked = true;
  lease.boundary.heir = heir;
  send_trim(lease, lease.part(lease.range.count - samples), {ReasonCode::moved, lease.worker, samples});
}

void Balance::send_trim(Lease& lease, Interval wanted, Reason reason) {
  Action& action = work_.act_on(lease, ActionKind::trim, reason);
  action.range = wanted;
  action.number = ++lease.boundary.trims;
}

// The range shrinks only now: until the worker said so, it might have computed these positions.
void Balance::answered(Lease& lease, std::uint64_t limit, Time now) {
  lease.boundary.asked = false;
  work_.balance = true;
  if (limit >= lease.range.count) return;
  const Interval promised = lease.range;
  Interval kept = lease.part(limit);
  // Ranges start on the grain; a worker that was beyond what was asked of it may have stopped between.
  if (lease.from_end) {
    const std::uint64_t first = std::max(kept.first / run_.config.grain * run_.config.grain, promised.first);
    kept = {first, promised.end() - first};
  } else {
    const std::uint64_t end = (kept.end() + run_.config.grain - 1) / run_.config.grain * run_.config.grain;
    kept = {promised.first, std::min(end, promised.end()) - promised.first};
  }
  lease.range = kept;
  const Reason reason{ReasonCode::moved, lease.worker, promised.count - kept.count};
  if (kept.count > limit) send_trim(lease, kept, reason);
  if (kept.count < promised.count)
    hand_over(lease, {lease.from_end ? promised.first : kept.end(), promised.count - kept.count}, reason, now);
}

void Balance::hand_over(Lease& from, Interval freed, Reason reason, Time now) {
  const SessionId session = std::exchange(from.boundary.heir, 0);
  const Member* heir = session == 0 ? nullptr : run_.roster.find(session);
  Lease* partner = from.boundary.partner == 0 ? nullptr : work_.leases.find(from.boundary.partner);
  if (from.due.passed || !takes_more(partner, freed)) partner = nullptr;
  if (!from.due.passed && heir != nullptr && heir->state == MemberState::member &&
      !work_.leases.has_live(heir->session)) {
    grants_.grant(*heir, freed, freed, false, reason, now);
  } else if (partner != nullptr) {
    partner->boundary.asked = false;  // an answer that is under way is of an older Trim
    partner->range = {std::min(partner->range.first, freed.first), partner->range.count + freed.count};
    const std::uint64_t outstanding = work_.leases.outstanding(partner->session);
    const auto extend = [&](Time& deadline, Duration allowed) {
      deadline = std::max(deadline, partner->granted + allowed);
    };
    extend(partner->due.deadline, run_.performance.allowance(work_.pass->id.kind, partner->worker, outstanding));
    extend(partner->due.unheard_deadline,
           run_.performance.unheard_allowance(work_.pass->id.kind, partner->worker, outstanding));
    send_trim(*partner, partner->range, reason);
  } else {
    work_.reissue = reason;
  }
}

bool Balance::takes_more(const Lease* lease, Interval by) const noexcept {
  if (lease == nullptr || lease->state != LeaseState::granted || lease->due.passed ||
      !by.within(lease->boundary.ceiling))
    return false;
  const Member* member = run_.roster.find(lease->session);
  const bool touches = lease->from_end ? by.end() == lease->range.first : lease->range.end() == by.first;
  return touches && member != nullptr && member->state == MemberState::member;
}

}  // namespace motley::modes
