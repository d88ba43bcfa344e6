#include "modes/exact/contributions.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/assert.h"
#include "modes/not_finite.h"

namespace motley::modes {
Lease* Contributions::live_lease(SessionId session, LeaseId id) {
  Lease* lease = work_.pass ? work_.leases.find(id) : nullptr;
  return lease != nullptr && lease->session == session && lease->live() ? lease : nullptr;
}

void Contributions::on(const LeaseBegun& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || lease->state != LeaseState::granted || !work_.training()) return;
  if (event.range.count == 0 || event.range.count > lease->range.count || event.range != lease->part(event.range.count))
    return refuse(*lease, {.code = ReasonCode::failed_lease, .worker = lease->worker});
  const Declared said{event.range.count, event.weight, event.loss_sum, lease->largest};
  if (!DeclaredBounds::possible(said)) return poison(*lease);
  if (doubts_.arise(*lease, said)) return doubt(*lease);
  const Interval promised = lease->range;
  if (lease->doubt.compared && event.range != promised) return handed_back(*lease);
  lease->weight = event.weight;
  lease->loss_sum = event.loss_sum;
  if (lease->doubt.compared) lease->doubt.unlike |= verification_.unlike(*lease);
  lease->doubt.withheld = lease->doubt.withheld || verification_.rejects(*lease);
  const Contribution contribution{
      .lease = lease->id, .range = event.range, .weight = event.weight, .loss_sum = event.loss_sum};
  if (!lease->doubt.withheld && !counts(*lease, contribution, now)) return;
  lease->state.enter(LeaseState::begun);
  lease->range = event.range;
  if (lease->doubt.withheld) {
    conclude(*lease);
  } else {
    take_buffered(*lease);
    // This range may have been the last one whose weight was not known.
    for (ChunkId chunk = 0; chunk < lease->chunks.size(); ++chunk) look(chunk);
    chunks_.look_at_all();
    if (!lease->doubt.withheld) settle(*lease, now);
  }
  if (promised.count == event.range.count) return;
  const Interval rest{lease->from_end ? promised.first : event.range.end(), promised.count - event.range.count};
  balance_.hand_over(*lease, rest, {.code = ReasonCode::cut_short, .worker = lease->worker}, now);
}

bool Contributions::counts(Lease& lease, const Contribution& said, Time now) {
  const auto verdict = work_.coverage.begin(said);
  if (verdict == Coverage::BeginVerdict::overlap) {
    refuse(lease, {.code = ReasonCode::overlap, .worker = lease.worker});
    return false;
  }
  if (verdict != Coverage::BeginVerdict::wrong_weight) return true;
  if (!disputes_.believes(lease, said, now)) {
    refuse(lease, {ReasonCode::wrong_weight, lease.worker, said.range.first, said.range.count});
    return false;
  }
  work_.coverage.replace(said);
  return true;
}

void Contributions::take_buffered(Lease& lease) {
  for (ChunkId chunk = 0; chunk < lease.chunks.size(); ++chunk)
    if (lease.chunks[chunk] == Lease::ChunkState::buffered) take_chunk(lease, chunk);
}

void Contributions::withhold(Lease& lease) {
  work_.coverage.withdraw(lease.id);
  lease.doubt.withheld = true;
  lease.settled = 0;
  for (Lease::ChunkState& chunk : lease.chunks)
    if (chunk == Lease::ChunkState::settled) chunk = Lease::ChunkState::buffered;
}

void Contributions::conclude(Lease& lease) {
  if (!lease.all_arrived()) return;
  verification_.claim(lease);
  refuse(lease, {ReasonCode::verified, lease.worker, lease.range.first, lease.range.count});
}

void Contributions::look(ChunkId chunk) {
  Lease* lease = verification_.stray(chunk);
  if (lease == nullptr) return;
  work_.act(ActionKind::sketch, {.code = ReasonCode::verified, .worker = lease->worker}).lease = lease->id;
  const bool live = lease->live();
  withhold(*lease);
  if (live) return conclude(*lease);
  verification_.claim(*lease);
  const Reason reason{ReasonCode::verified, lease->worker, lease->range.first, lease->range.count};
  work_.act(ActionKind::abandon, reason).lease = lease->id;
  work_.reissue = reason;
}

void Contributions::on(const ChunkArrived& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || !work_.training()) {
    Action& release = work_.act(ActionKind::release, {.code = ReasonCode::covered_elsewhere});
    release.lease = event.lease;
    release.chunk = event.chunk;
    return;
  }
  MOTLEY_ASSERT(event.chunk < lease->chunks.size());
  MOTLEY_ASSERT(lease->chunks[event.chunk] == Lease::ChunkState::awaited);
  lease->moves(now);
  const auto [gradient, statistic] = event.largest;
  if (!std::isfinite(gradient) || !std::isfinite(statistic)) return poison(*lease);
  lease->largest = {std::max(lease->largest.gradient, gradient), std::max(lease->largest.statistic, statistic)};
  lease->doubt.unlike |= event.unlike;
  if (event.bearing) lease->doubt.bearing = event.bearing;
  lease->lossy = lease->lossy || event.lossy;
  if (lease->state == LeaseState::granted) {
    lease->chunks[event.chunk] = Lease::ChunkState::buffered;
    return;
  }
  if (doubts_.arise(*lease, {lease->range.count, lease->weight, lease->loss_sum, event.largest})) return doubt(*lease);
  if (!lease->doubt.withheld && verification_.rejects(*lease)) withhold(*lease);
  if (lease->doubt.withheld) {
    lease->chunks[event.chunk] = Lease::ChunkState::buffered;
    return conclude(*lease);
  }
  take_chunk(*lease, event.chunk);
  look(event.chunk);
  chunks_.look(event.chunk);
  if (!lease->doubt.withheld) settle(*lease, now);
}

void Contributions::take_chunk(Lease& lease, ChunkId chunk) {
  lease.chunks[chunk] = Lease::ChunkState::settled;
  ++lease.settled;
  if (work_.coverage.deliver(lease.id, chunk)) return;
  Action& release = work_.act(ActionKind::release, {.code = ReasonCode::covered_elsewhere});
  release.lease = lease.id;
  release.chunk = chunk;
  // Where only a part was covered the rest may have no other promise now.
  work_.reissue = Reason{.code = ReasonCode::overlap, .worker = lease.worker};
}

void Contributions::settle(Lease& lease, Time now) {
  if (!lease.live() || lease.settled < lease.chunks.size()) return;
  ends_.end_whole(lease, now);
  if (!work_.coverage.covered(lease.range)) {
    // What covered a chunk when this one brought it was withdrawn since.
    work_.reissue = Reason{.code = ReasonCode::lost_lease, .worker = lease.worker};
  }
  const SessionId session = lease.session;
  work_.balance = true;  // it may have time to help others
  ends_.cancel_covered(now);
  host_.idle(session);
}

void Contributions::on(const LeaseFinished& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || event.count > lease->range.count) return;
  if (event.count == 0) {
    if (lease->state == LeaseState::granted) handed_back(*lease);
    return;
  }
  if (work_.training()) return;  // its chunks say when it is complete
  const Interval range{lease->range.first, event.count};
  // The loss of a model that diverged is worth reporting, a negative or infinite weight is not.
  if (!DeclaredBounds::possible(event.count, event.weight))
    return refuse(*lease, {.code = ReasonCode::failed_lease, .worker = lease->worker});
  const auto verdict = work_.coverage.begin({.lease = lease->id,
                                             .range = range,
                                             .weight = event.weight,
                                             .loss_sum = event.loss_sum,
                                             .correct = event.correct});
  if (verdict != Coverage::BeginVerdict::first)
    return refuse(*lease, {.code = ReasonCode::overlap, .worker = lease->worker});
  if (range.count < lease->range.count) {
    work_.reissue = Reason{.code = ReasonCode::cut_short, .worker = lease->worker};
  }
  lease->range = range;
  lease->state.enter(LeaseState::begun);
  take_chunk(*lease, 0);
  settle(*lease, now);
  chunks_.look(0);
}

void Contributions::on(const LeaseFailed& event) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr) return;
  const WorkerId worker = lease->worker;
  work_.avoid.push_back({.range = lease->range, .worker = worker});
  refuse(*lease, {.code = ReasonCode::failed_lease, .worker = worker});
  host_.strike(worker);
}

bool Contributions::confirmed(const Lease& lease) const {
  std::vector<WorkerId> said{lease.worker};
  std::size_t answers = 1;
  for (const PassWork::Avoid& avoid : work_.avoid) {
    if (!avoid.poisoned || !avoid.range.overlaps(lease.range)) continue;
    ++answers;
    if (std::ranges::find(said, avoid.worker) == said.end()) said.push_back(avoid.worker);
  }
  return answers >= 2 && enough_say_so(work_.run.roster, said);
}

void Contributions::poison(Lease& lease) {
  const Interval range = lease.range;
  const WorkerId worker = lease.worker;
  if (confirmed(lease)) {
    Action& diverged = work_.act(ActionKind::diverged, {ReasonCode::poisoned_twice, worker, range.first, range.count});
    diverged.range = range;
    return host_.finish(diverged.reason);
  }
  // Who says it again and again, and nobody else does, has no end.
  const bool insists = std::ranges::count_if(work_.avoid, [&](const PassWork::Avoid& avoid) {
                         return avoid.poisoned && avoid.worker == worker && avoid.range.overlaps(range);
                       }) > 1;
  const Reason reason{ReasonCode::poisoned, worker, range.first, range.count};
  work_.act(ActionKind::warn, reason);
  work_.avoid.push_back({.range = range, .worker = worker, .poisoned = true});
  work_.coverage.withdraw(lease.id);
  refuse(lease, reason);
  if (insists) host_.strike(worker);
}

void Contributions::doubt(Lease& lease) {
  work_.coverage.withdraw(lease.id);
  refuse(lease, {ReasonCode::unlikely, lease.worker, lease.range.first, lease.range.count});
}

void Contributions::refuse(Lease& lease, Reason reason) {
  MOTLEY_ASSERT(lease.live());
  work_.act_on(lease, ActionKind::taken, reason);  // it need not send the rest
  const SessionId session = lease.session;
  ends_.end(lease);
  work_.reissue = reason;
  host_.idle(session);
}

// Who wants to leave gives back what it has, and so does who begins anew with its weights: neither is asked again.
void Contributions::handed_back(Lease& lease) {
  const WorkerId worker = lease.worker;
  const fleet::Member* member = work_.run.roster.find(lease.session);
  const bool leaves = member == nullptr || member->state == fleet::MemberState::yielding;
  if (!leaves) work_.avoid.push_back({.range = lease.range, .worker = worker});
  refuse(lease, {.code = ReasonCode::cut_short, .worker = worker});
  if (leaves) return;
  fleet::WorkerRecord& record = work_.run.roster.record(worker);
  if (++record.handed_back < fleet::Roster::kHandedBackMax) return;
  work_.act(ActionKind::warn, {.code = ReasonCode::handed_back, .worker = worker, .a = record.handed_back});
  host_.strike(worker);
}

bool Contributions::is_unheard(const Lease& lease, Time now) const {
  const fleet::Member* member = work_.run.roster.find(lease.session);
  return now >= lease.due.unheard_deadline && member != nullptr && work_.run.is_unheard(*member, now);
}

void Contributions::watch(Time now) {
  for (Lease& lease : work_.leases.all()) {
    if (!lease.live() || lease.due.passed) continue;
    lease.due.unheard = now < lease.due.deadline && is_unheard(lease, now);
    if (now < lease.due.deadline && !lease.due.unheard) continue;
    lease.due.passed = true;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - lease.granted).count();
    work_.reissue =
        Reason{.code = ReasonCode::overdue, .worker = lease.worker, .a = static_cast<std::uint64_t>(waited)};
  }
}

}  // namespace motley::modes
