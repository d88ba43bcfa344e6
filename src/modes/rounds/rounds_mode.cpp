#include "modes/rounds/rounds_mode.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "modes/doubtful.h"
#include "modes/not_finite.h"
#include "modes/work/declared.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

bool RoundsMode::open(Time now) {
  if (run_.config.local_steps == 0) return false;
  MOTLEY_ASSERT(closed());
  std::optional<CutRound> cut = overlapped_.take();
  work_.state.enter(PassState::collecting);
  work_.pass = cut ? cut->pass : source_.round(run_.version);
  MOTLEY_ASSERT(work_.pass->id.number == run_.version);
  work_.pass->opened = now;
  run_.opened_any = true;
  work_.leases.clear();
  work_.avoid.clear();
  work_.coverage.reset(work_.pass->range.count, run_.config.chunks);
  committed_ = 0;
  for (const Member& member : run_.roster.all())
    if (member.streams) work_.act(ActionKind::open_pass).session = member.session;
  if (cut) {
    grants_.share_cut(std::move(*cut), now);
  } else {
    grants_.share_out(now);
  }
  return true;
}

void RoundsMode::take(const WorkEvent& event, Time now) {
  std::visit([&](const auto& concrete) { on(concrete, now); }, event);
}

Lease* RoundsMode::live_lease(SessionId session, LeaseId id) {
  Lease* lease = work_.pass ? work_.leases.find(id) : nullptr;
  return lease != nullptr && lease->session == session && lease->live() ? lease : nullptr;
}

void RoundsMode::on(const LeaseBegun& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || lease->state != LeaseState::granted) return;
  if (event.range != lease->range) return handed_back(*lease);  // a part of the steps is of no use
  if (!DeclaredBounds::possible(Declared{event.range.count, event.weight, event.loss_sum, lease->largest}))
    return poison(*lease);
  lease->weight = event.weight;
  lease->loss_sum = event.loss_sum;
  lease->overlapped = std::min(event.overlapped, work_.pass->local_steps);
  lease->state.enter(LeaseState::begun);
  overlapped_.go_on(*lease, now);
  commit_if_whole(*lease, now);
}

void RoundsMode::on(const ChunkArrived& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr) {
    Action& release = work_.act(ActionKind::release, {.code = ReasonCode::covered_elsewhere});
    release.lease = event.lease;
    release.chunk = event.chunk;
    return;
  }
  MOTLEY_ASSERT(lease->chunks.at(event.chunk) == Lease::ChunkState::awaited);
  if (!std::isfinite(event.largest.gradient)) return poison(*lease);
  lease->largest.gradient = std::max(lease->largest.gradient, event.largest.gradient);
  lease->chunks[event.chunk] = Lease::ChunkState::buffered;
  commit_if_whole(*lease, now);
}

void RoundsMode::commit_if_whole(Lease& lease, Time now) {
  if (lease.state != LeaseState::begun) return;
  if (!lease.all_arrived()) return;
  if (doubts(lease)) return refuse(lease, {ReasonCode::unlikely, lease.worker, lease.range.first, lease.range.count});
  const auto verdict = work_.coverage.begin(
      {.lease = lease.id, .range = lease.range, .weight = lease.weight, .loss_sum = lease.loss_sum});
  MOTLEY_ASSERT(verdict == Coverage::BeginVerdict::first);  // held by nobody else
  for (ChunkId chunk = 0; chunk < lease.chunks.size(); ++chunk) {
    const bool counts = work_.coverage.deliver(lease.id, chunk);
    MOTLEY_ASSERT(counts);
    lease.chunks[chunk] = Lease::ChunkState::settled;
  }
  ++committed_;
  ends_.end_whole(lease, now);
  host_.idle(lease.session);
}

void RoundsMode::on(const LeaseProgress& event, Time now) {
  if (Lease* lease = live_lease(event.session, event.lease))
    lease->last = {std::min(event.done, lease->range.count), now};
}

void RoundsMode::on(const LeaseFinished& event, Time) {
  if (overlapped_.has(event.session, event.lease))
    return overlapped_.withdraw(event.session, {.code = ReasonCode::cut_short});
  Lease* lease = live_lease(event.session, event.lease);
  if (lease != nullptr && event.count == 0 && lease->state == LeaseState::granted) handed_back(*lease);
}

void RoundsMode::on(const LeaseFailed& event, Time) {
  if (const Member* member = run_.roster.find(event.session);
      member != nullptr && overlapped_.has(event.session, event.lease)) {
    const WorkerId worker = member->worker;
    overlapped_.withdraw(event.session, {.code = ReasonCode::failed_lease, .worker = worker});
    return host_.strike(worker);
  }
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr) return;
  const WorkerId worker = lease->worker;
  work_.avoid.push_back({.range = lease->range, .worker = worker});
  refuse(*lease, {.code = ReasonCode::failed_lease, .worker = worker});
  host_.strike(worker);
}

bool RoundsMode::hopeless(std::span<const Owed> parts) const {
  const std::vector<WorkerId> said = suspects_.of(Suspects::Why::not_finite, parts);
  const auto answers = std::ranges::count(work_.avoid, true, &PassWork::Avoid::poisoned);
  return (said.size() >= 2 || answers >= 2) && enough_say_so(run_.roster, said);
}

void RoundsMode::poison(Lease& lease) {
  const Reason reason{ReasonCode::poisoned, lease.worker, lease.range.first, lease.range.count};
  const Interval range = lease.range;
  const RoundSpans parts = parts_of(work_.pass->spans, range);
  work_.act(ActionKind::warn, reason);
  work_.avoid.push_back({.range = range, .worker = lease.worker, .poisoned = true});
  suspects_.add(lease.worker, Suspects::Why::not_finite, parts);
  if (hopeless(parts)) {
    Action& diverged =
        work_.act(ActionKind::diverged, {ReasonCode::poisoned_twice, lease.worker, range.first, range.count});
    diverged.range = range;
    return host_.finish(diverged.reason);
  }
  refuse(lease, reason);
}

// Two say so: it is the samples.
bool RoundsMode::doubts(const Lease& lease) {
  const RoundSpans parts = parts_of(work_.pass->spans, lease.range);
  const Declared said{lease.range.count, lease.weight, lease.loss_sum, lease.largest};
  if (doubts_.likely(lease, said) || suspects_.believe(lease.worker, Suspects::Why::unlikely, parts)) return false;
  if (!doubts_.arise(lease, said)) return false;
  suspects_.add(lease.worker, Suspects::Why::unlikely, parts, !doubts_.undecided(lease, said));
  return true;
}

void RoundsMode::refuse(Lease& lease, Reason reason) {
  work_.act_on(lease, ActionKind::taken, reason);  // it need not send the rest
  const SessionId session = lease.session;
  ends_.end(lease);
  overlapped_.withdraw(session, reason);
  host_.idle(session);
}

// Who wants to leave gives back what it has, and so does who begins anew with its weights: neither is at fault.
void RoundsMode::handed_back(Lease& lease) {
  const WorkerId worker = lease.worker;
  const Member* member = run_.roster.find(lease.session);
  const bool leaves = member == nullptr || member->state == MemberState::yielding;
  if (!leaves) work_.avoid.push_back({.range = lease.range, .worker = worker});
  refuse(lease, {.code = ReasonCode::cut_short, .worker = worker});
  if (leaves) return;
  fleet::WorkerRecord& record = run_.roster.record(worker);
  if (++record.handed_back < fleet::Roster::kHandedBackMax) return;
  work_.act(ActionKind::warn, {.code = ReasonCode::handed_back, .worker = worker, .a = record.handed_back});
  host_.strike(worker);
}

bool RoundsMode::any_live() const noexcept { return std::ranges::any_of(work_.leases.all(), &Lease::live); }

// Closed when all are in, or at the deadline with what is in then. Without anything there is no step to make, and after
// the last round there is none for what is missing: then it goes on.
void RoundsMode::settle(Time now) {
  if (!work_.pass || run_.finished) return;
  if (work_.state == PassState::collecting) go_on(now);
  if (work_.state == PassState::updating && !run_.finished) finish_chunks();
}

void RoundsMode::go_on(Time now) {
  const bool last = run_.version + 1 >= run_.steps();
  const IntervalSet missing = work_.coverage.missing({});
  if (run_.stopping) return stop(last, missing.ranges());
  if (any_live() && now < grants_.deadline()) return;
  const bool closes = committed_ > 0 && (!last || missing.empty());
  if (!closes) grants_.call_parked(now);
  if (any_live() && !closes && !grants_.somebody_is_free(now)) return;
  end_late(now);
  if (closes) return close_round(missing.ranges());
  if (committed_ == 0) {
    grants_.share_out(now);
  } else {
    grants_.share_rest(missing.ranges(), now);
  }
}

// With what is in; the rest is owed, which a run that goes on knows.
void RoundsMode::stop(bool last, std::span<const Interval> missing) {
  if (committed_ == 0 || (last && !missing.empty())) return host_.finish({.code = ReasonCode::stopped});
  ends_.end_open();
  close_round(missing);
}

void RoundsMode::end_late(Time now) {
  for (Lease& lease : work_.leases.all()) {
    if (!lease.live()) continue;
    const WorkerId worker = lease.worker;
    const Reason reason{ReasonCode::overdue, worker, whole_milliseconds(now - lease.granted)};
    work_.act(ActionKind::warn, reason);
    lease.due.passed = true;
    ends_.report_late(lease, now);
    ends_.revoke(lease, reason);
    ends_.end(lease);
    overlapped_.withdraw(lease.session, reason);
    work_.avoid.push_back({.range = lease.range, .worker = worker});
  }
}

void RoundsMode::close_round(std::span<const Interval> free) {
  RoundSpans first;
  for (const Interval& interval : free)
    for (const Owed& part : parts_of(work_.pass->spans, interval)) append(first, part);
  source_.owe(first);
  work_.state.enter(PassState::updating);
}

// After all else that the event led to.
void RoundsMode::finish_chunks() {
  const Reason reason{.code = ReasonCode::all_covered};
  for (ChunkId i = 0; i < run_.config.chunks; ++i)
    work_.act(ActionKind::finish_chunk, reason).chunk = (run_.config.first_applied + i) % run_.config.chunks;
  work_.state.enter(PassState::closing);
  work_.act(ActionKind::close_step, reason);
}

void RoundsMode::on(const PassFinished&, Time now) {
  if (run_.finished) return;
  MOTLEY_ASSERT(work_.state == PassState::closing);
  const Duration took = now - work_.pass->opened;
  std::vector<WorkerId> wrong;
  for (const Lease& lease : work_.leases.all()) {
    if (work_.coverage.find(lease.id) == nullptr) continue;
    for (const WorkerId worker : suspects_.counted(lease.worker, parts_of(work_.pass->spans, lease.range)))
      wrong.push_back(worker);
  }
  work_.state.enter(PassState::closed);
  work_.pass.reset();
  doubts_.learn();
  work_.avoid.clear();
  ++run_.version;
  host_.version_made(true, took, now);
  for (const WorkerId worker : wrong) host_.strike(worker);
  host_.all_idle();
}

void RoundsMode::shift(Duration gap, Time now) noexcept {
  for (Lease& lease : work_.leases.all()) {
    lease.granted = std::min(lease.granted + gap, now);
    lease.due.deadline += gap;
  }
  grants_.shift(gap);
  if (work_.pass) work_.pass->opened = std::min(work_.pass->opened + gap, now);
}

void RoundsMode::joined(const Member& member, Reason reason) {
  if (work_.pass) work_.act(ActionKind::open_pass, reason).session = member.session;
}

}  // namespace motley::modes
