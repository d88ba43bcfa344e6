// Sessions: joining, hearing nothing, leaving, strikes.

#include <algorithm>

#include "base/assert.h"
#include "cluster/coordinator_machine.h"
#include "cluster/fence.h"

namespace motley::cluster {
namespace {

constexpr Duration kGapMin = std::chrono::seconds(1);  // the machine slept, or was stopped

}  // namespace

void CoordinatorMachine::on(const Started&, Time) {
  MOTLEY_ASSERT(!started_);
  started_ = true;
  // A finished run that is resumed is evaluated once more, so that it ends as any other.
  // Where steps depend on evaluations, one may be missing that was due when the run ended.
  const bool missing = version_ >= steps() || (!config_.evaluates_aside && version_ > 0 && evaluation_due());
  mark_hold_due_ = config_.holds != Holds::never && config_.hold_owed && version_ > 0 && at_mark();
  evaluation_pending_ = config_.test_samples > 0 && (missing || mark_hold_due_);
}

void CoordinatorMachine::on(const StopAsked& event, Time) {
  final_ = final_ || event.final;
  if (finished_ || stopping_) return;
  stopping_ = true;
}

void CoordinatorMachine::on(const SessionOpened& event, Time now) {
  if (members_.find(event.session) != nullptr) return;
  const bool full = members_.all().size() >= config_.sessions_max;
  members_.open(event.session, event.local, now);
  if (finished_) {
    close_session(event.session, {.code = end_reason()});
  } else if (full) {
    close_session(event.session, {.code = ReasonCode::full, .a = config_.sessions_max});
  }
}

void CoordinatorMachine::on(const WorkerReady& event, Time) {
  Member* member = members_.find(event.session);
  if (member == nullptr || member->admitted()) return;
  MOTLEY_ASSERT(event.worker != 0);
  member->worker = event.worker;
  const WorkerRecord& record = members_.record(event.worker);
  if (record.excluded) {
    member->state.enter(MemberState::excluded);
    close_session(event.session, {.code = ReasonCode::excluded, .worker = event.worker, .a = record.strikes});
    return;
  }
  member->state.enter(MemberState::syncing);
  Action& admit = act(ActionKind::admit, {.code = ReasonCode::joined, .worker = event.worker});
  admit.session = event.session;
  MOTLEY_ASSERT(event.session <= UINT32_MAX);
  // The session's own number: whoever drives this finds the session of a data connection by it.
  admit.fence = Fence{.incarnation = config_.incarnation, .session = static_cast<std::uint32_t>(event.session)}.pack();
  Action& send = act(ActionKind::send_weights, {.code = ReasonCode::joined, .worker = event.worker});
  send.session = event.session;
  send.urgent = member->local;
}

void CoordinatorMachine::on(const WorkerSynced& event, Time now) {
  Member* member = members_.find(event.session);
  if (member == nullptr || event.version > version_) return;
  if (member->state == MemberState::parked) link_answered(*member, now);
  if (member->state != MemberState::syncing) return;
  member->holds = event.version;
  consider(*member, now);
}

void CoordinatorMachine::on(const RefreshWanted& event, Time) {
  Member* member = members_.find(event.session);
  if (member == nullptr || !member->admitted()) return;
  if (event.differs) {
    strike(member->worker);
    member = members_.find(event.session);  // the third strike closes the session
    if (member == nullptr) return;
  }
  // It may have thrown away what it was granted along with the weights.
  for (Lease& lease : leases_.all()) {
    if (lease.session != event.session || !lease.live()) continue;
    revoke(lease, {.code = ReasonCode::lost_lease, .worker = lease.worker});
    end_lease(lease);
    reissue_wanted_ = true;
    reissue_reason_ = {.code = ReasonCode::lost_lease, .worker = lease.worker};
  }
  if (member->state == MemberState::yielding) {
    dismiss_if_idle(event.session);
    return;
  }
  if (aside_ && aside_->session == event.session) drop_aside(false);
  member->state.enter(MemberState::syncing);
  member->streams = false;
  member->trial = 0;
  Action& send = act(ActionKind::send_weights, {.code = ReasonCode::joined, .worker = member->worker});
  send.session = event.session;
  send.urgent = true;
}

void CoordinatorMachine::on(const WorkerYields& event, Time) {
  Member* member = members_.find(event.session);
  if (member == nullptr) return;
  member->state.enter(MemberState::yielding);
  dismiss_if_idle(event.session);
}

void CoordinatorMachine::dismiss_if_idle(SessionId session) {
  const Member* member = members_.find(session);
  if (member == nullptr || member->state != MemberState::yielding || leases_.has_live(session)) return;
  if (stretch_ && stretch_->session == session) return;
  close_session(session, {.code = ReasonCode::yielded, .worker = member->worker});
}

void CoordinatorMachine::on(const SessionEnded& event, Time) {
  const Member* member = members_.find(event.session);
  if (member == nullptr) return;
  close_session(event.session,
                {.code = event.left ? ReasonCode::left : ReasonCode::channel_closed, .worker = member->worker});
}

void CoordinatorMachine::close_session(SessionId session, Reason reason) {
  const Member* member = members_.find(session);
  MOTLEY_ASSERT(member != nullptr);
  const WorkerId worker = member->worker;
  for (Lease& lease : leases_.all()) {
    if (lease.session != session || !lease.live()) continue;
    revoke(lease, reason);
    end_lease(lease);
    reissue_wanted_ = true;
    reissue_reason_ = {.code = ReasonCode::lost_lease, .worker = worker};
  }
  const bool solo = stretch_ && stretch_->session == session;
  if (solo) cut(reason);
  if (aside_ && aside_->session == session) drop_aside(false);
  Action& close = act(ActionKind::close_session, reason);
  close.session = session;
  close.worker = worker;
  members_.close(session);
  if (solo) end_stretch();
  // Without it the others may be worth their while.
  for (Member& other : members_.all()) other.trial_due = other.help_due = {};
}

void CoordinatorMachine::strike(WorkerId worker) {
  const bool out = members_.strike(worker, version_);
  const std::uint32_t strikes = members_.record(worker).strikes;
  act(ActionKind::warn, {ReasonCode::strike, worker, strikes, fleet::Roster::kStrikesMax});
  if (!out) return;
  for (Member& member : members_.all()) {
    if (member.worker != worker) continue;
    member.state.enter(MemberState::excluded);
    close_session(member.session, {.code = ReasonCode::excluded, .worker = worker, .a = strikes});
    return;
  }
}

void CoordinatorMachine::on(const Ticked&, Time now) {
  notice_gap(now);
  watch_sessions(now);
  watch_leases(now);
  balance_wanted_ = true;
  watch_stretch(now);
  watch_aside(now);
}

void CoordinatorMachine::notice_gap(Time now) {
  const Duration gap = last_tick_ ? now - *last_tick_ : Duration{};
  last_tick_ = now;
  if (gap <= kGapMin) return;
  members_.shift(gap, now);
  for (Lease& lease : leases_.all()) {
    lease.granted = std::min(lease.granted + gap, now);
    lease.deadline += gap;
    for (Lease::Report* report : {&lease.first, &lease.last}) report->at = std::min(report->at + gap, now);
  }
  if (pass_) pass_->opened = std::min(pass_->opened + gap, now);
  if (stretch_) stretch_->since += gap, stretch_->deadline += gap;
  act(ActionKind::warn, {.code = ReasonCode::woke, .a = whole_milliseconds(gap)});
}

void CoordinatorMachine::watch_sessions(Time now) {
  for (std::size_t i = 0; i < members_.all().size();) {
    Member& member = members_.all()[i];
    if (member.admitted() && now - member.heard >= config_.silence) {
      close_session(member.session,
                    {.code = ReasonCode::silent, .worker = member.worker, .a = whole_milliseconds(now - member.heard)});
      continue;
    }
    if (member.state == MemberState::loading && now - member.opened >= config_.loading) {
      close_session(member.session,
                    {.code = ReasonCode::slow_to_load, .a = whole_milliseconds(config_.loading) / 1000});
      continue;
    }
    const bool still = held_ && (member.local || member.compared);
    const bool busy = still || member.trial != 0 || (aside_ && aside_->session == member.session);
    if (member.state == MemberState::parked && !busy && now >= member.trial_due) {
      if (member.compared) {
        end_comparison(now);
      } else {
        try_link(member, now);
        calibrate(member, pace_.trial(member.worker));
      }
    }
    if (now - member.heartbeat_sent >= config_.heartbeat) {
      member.heartbeat_sent = now;
      act(ActionKind::heartbeat).session = member.session;
    }
    ++i;
  }
}

}  // namespace motley::cluster
