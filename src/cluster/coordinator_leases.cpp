// Contributions: begun, delivered, poisoned, overdue, granted again.

#include <algorithm>

#include "base/assert.h"
#include "cluster/coordinator_machine.h"

namespace motley::cluster {
namespace {

// x - x is 0 exactly for finite numbers; keeps the decision free of the mathematics library.
bool finite(double x) noexcept { return x - x == 0; }

}  // namespace

Lease* CoordinatorMachine::live_lease(SessionId session, LeaseId id) {
  Lease* lease = pass_ ? leases_.find(id) : nullptr;
  return lease != nullptr && lease->session == session && lease->live() ? lease : nullptr;
}

void CoordinatorMachine::on(const LeaseBegun& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || lease->state != LeaseState::granted || !training()) return;
  if (event.range.count == 0 || event.range.count > lease->range.count || event.range != lease->part(event.range.count))
    return refuse(*lease, {.code = ReasonCode::failed_lease, .worker = lease->worker});
  if (!finite(event.weight) || !finite(event.loss_sum) || event.weight < 0) return poison(*lease);
  const auto verdict =
      coverage_.begin({.lease = lease->id, .range = event.range, .weight = event.weight, .loss_sum = event.loss_sum});
  if (verdict == Coverage::BeginVerdict::overlap)
    return refuse(*lease, {.code = ReasonCode::overlap, .worker = lease->worker});
  if (verdict == Coverage::BeginVerdict::wrong_weight) {
    const Reason reason{ReasonCode::wrong_weight, lease->worker, event.range.first, event.range.count};
    act(ActionKind::warn, reason);
    avoid_.push_back({.range = lease->range, .worker = lease->worker});
    const WorkerId worker = lease->worker;
    refuse(*lease, reason);
    return strike(worker);
  }
  const Interval promised = lease->range;
  lease->state = LeaseState::begun;
  lease->range = event.range;
  for (ChunkId chunk = 0; chunk < lease->chunks.size(); ++chunk)
    if (lease->chunks[chunk] == Lease::ChunkState::early) take_chunk(*lease, chunk, now);
  // This range may have been the last one whose weight was not known.
  if (coverage_.weight_known())
    for (ChunkId chunk = 0; chunk < coverage_.chunks(); ++chunk) reduce_if_ready(chunk);
  settle(*lease, now);
  if (promised.count == event.range.count) return;
  const Interval rest{lease->from_end ? promised.first : event.range.end(), promised.count - event.range.count};
  hand_over(*lease, rest, {.code = ReasonCode::cut_short, .worker = lease->worker}, now);
}

void CoordinatorMachine::on(const ChunkArrived& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || !training()) {
    Action& release = act(ActionKind::release, {.code = ReasonCode::covered_elsewhere});
    release.lease = event.lease;
    release.chunk = event.chunk;
    return;
  }
  MOTLEY_ASSERT(event.chunk < lease->chunks.size());
  MOTLEY_ASSERT(lease->chunks[event.chunk] == Lease::ChunkState::awaited);
  if (!event.finite) return poison(*lease);
  if (lease->state == LeaseState::granted) {
    lease->chunks[event.chunk] = Lease::ChunkState::early;
    return;
  }
  take_chunk(*lease, event.chunk, now);
  reduce_if_ready(event.chunk);
  settle(*lease, now);
}

void CoordinatorMachine::take_chunk(Lease& lease, ChunkId chunk, Time) {
  lease.chunks[chunk] = Lease::ChunkState::settled;
  ++lease.settled;
  if (coverage_.deliver(lease.id, chunk)) return;
  Action& release = act(ActionKind::release, {.code = ReasonCode::covered_elsewhere});
  release.lease = lease.id;
  release.chunk = chunk;
  // Where only a part was covered the rest may have no other promise now.
  reissue_wanted_ = true;
  reissue_reason_ = {.code = ReasonCode::overlap, .worker = lease.worker};
}

void CoordinatorMachine::settle(Lease& lease, Time now) {
  if (!lease.live() || lease.settled < lease.chunks.size()) return;
  lease.state = LeaseState::ended;
  Action& taken = act(ActionKind::taken, {.code = ReasonCode::all_covered, .worker = lease.worker});
  taken.session = lease.session;
  taken.lease = lease.id;
  if (lease.first_of_pass) {
    Action& measured = act(ActionKind::measured);
    measured.worker = lease.worker;
    measured.lease = lease.id;
    measured.range = lease.range;
    measured.elapsed = now - lease.granted;
  }
  if (!coverage_.covered(lease.range)) {
    // What covered a chunk when this one brought it was withdrawn since.
    reissue_wanted_ = true;
    reissue_reason_ = {.code = ReasonCode::lost_lease, .worker = lease.worker};
  }
  const SessionId session = lease.session;
  balance_wanted_ = true;  // it may have time to help others
  cancel_covered(now);
  dismiss_if_idle(session);
}

void CoordinatorMachine::on(const LeaseFinished& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || event.count > lease->range.count) return;
  if (event.count == 0) {
    if (lease->state == LeaseState::granted) refuse(*lease, {.code = ReasonCode::cut_short, .worker = lease->worker});
    return;
  }
  if (training()) return;  // its chunks say when it is complete
  const Interval range{lease->range.first, event.count};
  // The loss of a model that diverged is worth reporting, a negative or infinite weight is not.
  if (!finite(event.weight) || event.weight < 0)
    return refuse(*lease, {.code = ReasonCode::failed_lease, .worker = lease->worker});
  const auto verdict = coverage_.begin({.lease = lease->id,
                                        .range = range,
                                        .weight = event.weight,
                                        .loss_sum = event.loss_sum,
                                        .correct = event.correct});
  if (verdict != Coverage::BeginVerdict::first)
    return refuse(*lease, {.code = ReasonCode::overlap, .worker = lease->worker});
  if (range.count < lease->range.count) {
    reissue_wanted_ = true;
    reissue_reason_ = {.code = ReasonCode::cut_short, .worker = lease->worker};
  }
  lease->range = range;
  lease->state = LeaseState::begun;
  take_chunk(*lease, 0, now);
  settle(*lease, now);
  reduce_if_ready(0);
}

void CoordinatorMachine::on(const LeaseFailed& event, Time) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr) return;
  const WorkerId worker = lease->worker;
  avoid_.push_back({.range = lease->range, .worker = worker});
  refuse(*lease, {.code = ReasonCode::failed_lease, .worker = worker});
  strike(worker);
}

void CoordinatorMachine::poison(Lease& lease) {
  const Interval range = lease.range;
  const WorkerId worker = lease.worker;
  const bool again = std::any_of(avoid_.begin(), avoid_.end(),
                                 [&](const Avoid& avoid) { return avoid.poisoned && avoid.range.overlaps(range); });
  if (again) {
    Action& diverged = act(ActionKind::diverged, {ReasonCode::poisoned_twice, worker, range.first, range.count});
    diverged.range = range;
    return finish(diverged.reason);
  }
  const Reason reason{ReasonCode::poisoned, worker, range.first, range.count};
  act(ActionKind::warn, reason);
  avoid_.push_back({.range = range, .worker = worker, .poisoned = true});
  coverage_.withdraw(lease.id);
  refuse(lease, reason);
}

void CoordinatorMachine::refuse(Lease& lease, Reason reason) {
  MOTLEY_ASSERT(lease.live());
  Action& taken = act(ActionKind::taken, reason);  // it need not send the rest
  taken.session = lease.session;
  taken.lease = lease.id;
  const SessionId session = lease.session;
  end_lease(lease);
  reissue_wanted_ = true;
  reissue_reason_ = reason;
  dismiss_if_idle(session);
}

void CoordinatorMachine::revoke(const Lease& lease, Reason reason) {
  Action& action = act(lease.state == LeaseState::begun ? ActionKind::taken : ActionKind::cancel, reason);
  action.session = lease.session;
  action.lease = lease.id;
}

void CoordinatorMachine::end_lease(Lease& lease) {
  lease.state = LeaseState::ended;
  coverage_.drop(lease.id);
  act(ActionKind::abandon, {.code = ReasonCode::lost_lease, .worker = lease.worker}).lease = lease.id;
}

void CoordinatorMachine::cancel_covered(Time now) {
  for (Lease& lease : leases_.all()) {
    if (lease.state != LeaseState::granted || !coverage_.covered(lease.range)) continue;
    Action& cancel = act(ActionKind::cancel, {.code = ReasonCode::covered_elsewhere, .worker = lease.worker});
    cancel.session = lease.session;
    cancel.lease = lease.id;
    report_late(lease, now);
    end_lease(lease);
  }
}

void CoordinatorMachine::watch_leases(Time now) {
  for (Lease& lease : leases_.all()) {
    if (!lease.live() || lease.overdue || now < lease.deadline) continue;
    lease.overdue = true;
    reissue_wanted_ = true;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - lease.granted).count();
    reissue_reason_ = {.code = ReasonCode::overdue, .worker = lease.worker, .a = static_cast<std::uint64_t>(waited)};
  }
}

void CoordinatorMachine::reissue(Time now) {
  std::vector<const Member*> able;
  for (const Member& member : members_.all())
    if (member.state == MemberState::member && !leases_.has_overdue(member.session)) able.push_back(&member);
  if (able.empty() && members_.count(MemberState::parked) > 0) {
    take_in_parked();
    for (const Member& member : members_.all())
      if (member.state == MemberState::member && !leases_.has_overdue(member.session)) able.push_back(&member);
  }
  if (able.empty()) return;  // asked again after every event until somebody is there
  reissue_wanted_ = false;
  std::vector<Interval> promised;
  for (const Lease& lease : leases_.all())
    if (lease.live() && !lease.overdue) promised.push_back(lease.range);
  const std::vector<Interval> parts = coverage_.tiles(coverage_.missing(promised));
  if (parts.empty()) return;
  std::sort(able.begin(), able.end(), [](const Member* a, const Member* b) { return a->worker < b->worker; });
  const Reason reason = reissue_reason_;
  std::vector<Interval> free;
  for (const Interval& part : parts) {
    std::vector<const Member*> others = able;
    for (const Avoid& avoid : avoid_)
      if (avoid.range.overlaps(part)) std::erase_if(others, [&](const Member* m) { return m->worker == avoid.worker; });
    if (others.size() == able.size() || others.empty()) {
      free.push_back(part);
    } else {
      grant_parts({&part, 1}, others, reason, now);
    }
  }
  if (!free.empty()) grant_parts(free, able, reason, now);
}

void CoordinatorMachine::grant_parts(std::span<const Interval> parts, std::span<const Member* const> to, Reason reason,
                                     Time now) {
  std::uint64_t total = 0;
  for (const Interval& part : parts) total += part.count;
  split_workers_.clear();
  for (const Member* member : to) split_workers_.push_back(member->worker);
  split_counts_.assign(to.size(), 0);
  pace_.split(pass_->id.kind, total, split_workers_, true, split_counts_);
  std::size_t who = 0;
  std::uint64_t left = split_counts_[0];
  for (const Interval& part : parts) {
    std::uint64_t first = part.first;
    while (first < part.end()) {
      while (left == 0 && who + 1 < to.size()) left = split_counts_[++who];
      const std::uint64_t rest = part.end() - first;
      std::uint64_t count = who + 1 == to.size() ? rest : std::min(left, rest);
      // Ranges start on the grain; whoever is asked for a fraction of it takes all of it.
      const std::uint64_t end = (first + count + config_.grain - 1) / config_.grain * config_.grain;
      count = std::min(end - first, rest);
      grant(*to[who], {first, count}, {first, count}, false, reason, now);
      left -= std::min(left, count);
      first += count;
    }
  }
}

LeaseId CoordinatorMachine::grant(const Member& to, Interval range, Interval ceiling, bool first_of_pass, Reason reason,
                                  Time now) {
  MOTLEY_ASSERT(to.state == MemberState::member && pass_ && range.end() <= pass_->range.count);
  const std::uint64_t outstanding = leases_.outstanding(to.session) + range.count;
  Lease& lease = leases_.add(to.session, to.worker, range, coverage_.chunks());
  lease.ceiling = ceiling;
  lease.from_end = ceiling.first < range.first;
  lease.first_of_pass = first_of_pass;
  lease.granted = now;
  lease.deadline = now + pace_.allowance(pass_->id.kind, to.worker, outstanding);
  Action& action = act(ActionKind::grant, reason);
  action.session = to.session;
  action.worker = to.worker;
  action.lease = lease.id;
  action.range = range;
  action.ceiling = ceiling;
  return lease.id;
}

}  // namespace motley::cluster
