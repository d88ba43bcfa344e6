#include "cluster/sessions.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "cluster/fence.h"

namespace motley::cluster {

using fleet::Member, fleet::MemberState, fleet::SessionId, fleet::WorkerId;
using modes::Action, modes::ActionKind, modes::Reason, modes::ReasonCode;

namespace {

constexpr Duration kGapMin = std::chrono::seconds(1);  // the machine slept, or was stopped

}  // namespace

void Sessions::on(const modes::SessionOpened& event, std::optional<ReasonCode> over, Time now) {
  if (run_.roster.find(event.session) != nullptr) return;
  const bool full = !has_room(now);
  if (!full && !over && run_.roster.all().size() >= run_.config.sessions_max) make_room(now);
  run_.roster.open(event.session, event.local, now);
  if (over) {
    close(event.session, {.code = *over});
  } else if (full) {
    close(event.session, {.code = ReasonCode::full, .a = run_.config.sessions_max});
  }
}

bool Sessions::has_room(Time now) const {
  return run_.roster.all().size() < run_.config.sessions_max || run_.roster.idle(now) != nullptr;
}

// Holding a token is enough to come in, and whoever holds all places would keep the others out.
void Sessions::make_room(Time now) {
  const Member& idle = *run_.roster.idle(now);
  const std::uint64_t seconds = modes::whole_milliseconds(now - idle.opened) / 1000;
  close(idle.session, {.code = ReasonCode::makes_room, .worker = idle.worker, .a = seconds});
}

void Sessions::on(const modes::WorkerReady& event) {
  Member* member = run_.roster.find(event.session);
  if (member == nullptr || member->admitted()) return;
  MOTLEY_ASSERT(event.worker != 0);
  member->worker = event.worker;
  member->shown.numbers = event.numbers;
  member->shown.watched = event.watched;
  const fleet::WorkerRecord& record = run_.roster.record(event.worker);
  if (record.excluded) {
    member->state.enter(MemberState::excluded);
    return close(event.session, {.code = ReasonCode::excluded, .worker = event.worker, .a = record.all_strikes()});
  }
  member->state.enter(MemberState::syncing);
  Action& admit = run_.act(ActionKind::admit, {.code = ReasonCode::joined, .worker = event.worker});
  admit.session = event.session;
  MOTLEY_ASSERT(event.session <= UINT32_MAX);
  // The session's own number: whoever drives this finds the session of a data connection by it.
  admit.fence =
      Fence{.incarnation = run_.config.incarnation, .session = static_cast<std::uint32_t>(event.session)}.pack();
  Action& send = run_.act(ActionKind::send_weights, {.code = ReasonCode::joined, .worker = event.worker});
  send.session = event.session;
  send.urgent = member->local;
}

void Sessions::on(const modes::WorkerSynced& event, Time now) {
  Member* member = run_.roster.find(event.session);
  if (member == nullptr || event.version > run_.version) return;
  if (member->state == MemberState::parked) parking_.link_answered(*member, now);
  if (member->state != MemberState::syncing) return;
  member->holds = event.version;
  member->synced = true;
  probes_.synced(*member, now);
  consider(*member, now);
}

void Sessions::on(const modes::ProbesCompared& event) {
  if (const auto session = probes_.on(event)) close(*session, {.code = ReasonCode::otherwise, .worker = event.worker});
}

void Sessions::consider(Member& member, Time now) {
  const bool alone = run_.roster.all().size() == 1 && run_.config.min_workers <= 1;
  parking_.consider(member, run_.batch(), alone, now);
}

void Sessions::on(const modes::RefreshWanted& event) {
  Member* member = run_.roster.find(event.session);
  if (member == nullptr || !member->admitted()) return;
  if (event.differs) {
    strike(member->worker);
    member = run_.roster.find(event.session);  // the third strike closes the session
    if (member == nullptr) return;
  }
  // It may have thrown away what it was granted along with the weights.
  const Reason lost{.code = ReasonCode::lost_lease, .worker = member->worker};
  rooms_.exact.session_lost(event.session, lost);
  rooms_.rounds.session_lost(event.session, lost);
  if (member->state == MemberState::yielding) return dismiss_if_idle(event.session);
  rooms_.evaluation.session_lost(event.session);
  member->state.enter(MemberState::syncing);
  member->streams = false;
  member->trial = 0;
  Action& send = run_.act(ActionKind::send_weights, {.code = ReasonCode::joined, .worker = member->worker});
  send.session = event.session;
  send.urgent = true;
}

void Sessions::on(const modes::WorkerYields& event) {
  Member* member = run_.roster.find(event.session);
  if (member == nullptr || !member->admitted()) return;
  member->state.enter(MemberState::yielding);
  dismiss_if_idle(event.session);
}

void Sessions::dismiss_if_idle(SessionId session) {
  const Member* member = run_.roster.find(session);
  if (member == nullptr || member->state != MemberState::yielding) return;
  for (const modes::Mode* mode : rooms_.all_modes())
    if (mode->busy(session)) return;
  close(session, {.code = ReasonCode::yielded, .worker = member->worker});
}

void Sessions::dismiss_idle() {
  for (std::size_t i = run_.roster.all().size(); i-- > 0;) dismiss_if_idle(run_.roster.all()[i].session);
}

void Sessions::on(const modes::SessionEnded& event) {
  const Member* member = run_.roster.find(event.session);
  if (member == nullptr) return;
  close(event.session, {.code = event.left ? ReasonCode::left : ReasonCode::channel_closed, .worker = member->worker});
}

void Sessions::on(const modes::Calibrated& event, Time now) {
  Member* member = run_.roster.find(event.session);
  if (member == nullptr || event.lease == 0 || member->trial != event.lease) return;
  member->trial = 0;
  if (event.failed) {
    strike(member->worker);
    member = run_.roster.find(event.session);  // the third strike closes the session
    if (member == nullptr) return;
  }
  if (member->state == MemberState::calibrating || member->state == MemberState::parked) consider(*member, now);
}

void Sessions::close(SessionId session, Reason reason) {
  const Member* member = run_.roster.find(session);
  MOTLEY_ASSERT(member != nullptr);
  const WorkerId worker = member->worker;
  for (modes::Mode* mode : rooms_.all_modes()) mode->session_lost(session, reason);
  rooms_.evaluation.session_lost(session);
  probes_.session_lost(session);
  Action& action = run_.act(ActionKind::close_session, reason);
  action.session = session;
  action.worker = worker;
  run_.roster.close(session);
  for (modes::Mode* mode : rooms_.all_modes()) mode->session_forgotten(session);
  // Without it the others may be worth their while.
  for (Member& other : run_.roster.all()) other.parked.trial_due = other.share.due = {};
}

void Sessions::close_all(Reason reason) {
  while (!run_.roster.all().empty()) close(run_.roster.all().front().session, reason);
}

void Sessions::strike(WorkerId worker) { struck(worker, run_.roster.strike(worker, run_.version)); }

void Sessions::refute(WorkerId worker) { struck(worker, run_.roster.refute(worker, run_.version)); }

void Sessions::struck(WorkerId worker, bool out) {
  const std::uint32_t strikes = run_.roster.record(worker).all_strikes();
  run_.act(ActionKind::warn, {ReasonCode::strike, worker, strikes, fleet::Roster::kStrikesMax});
  if (!out) return;
  for (Member& member : run_.roster.all()) {
    if (member.worker != worker) continue;
    member.state.enter(MemberState::excluded);
    return close(member.session, {.code = ReasonCode::excluded, .worker = worker, .a = strikes});
  }
}

void Sessions::resumed(Time now) {
  probes_.resumed();
  for (std::size_t i = 0; i < run_.roster.all().size(); ++i) {
    Member& member = run_.roster.all()[i];
    if (!std::exchange(member.waits_for_release, false) || member.trial != 0) continue;
    if (member.state == MemberState::syncing || member.state == MemberState::calibrating) consider(member, now);
  }
}

void Sessions::notice_gap(Time now) {
  const Duration gap = last_tick_ ? now - *last_tick_ : Duration{};
  last_tick_ = now;
  if (gap <= kGapMin) return;
  run_.roster.shift(gap, now);
  for (modes::Mode* mode : rooms_.all_modes()) mode->shift(gap, now);
  run_.act(ActionKind::warn, {.code = ReasonCode::woke, .a = modes::whole_milliseconds(gap)});
}

void Sessions::watch(Time now) {
  probes_.watch(now);
  for (std::size_t i = 0; i < run_.roster.all().size();) {
    Member& member = run_.roster.all()[i];
    if (member.admitted() && now - member.heard >= run_.config.silence) {
      const std::uint64_t silent = modes::whole_milliseconds(now - member.heard);
      close(member.session, {.code = ReasonCode::silent, .worker = member.worker, .a = silent});
      continue;
    }
    if (member.state == MemberState::loading && now - member.opened >= run_.config.loading) {
      const std::uint64_t seconds = modes::whole_milliseconds(run_.config.loading) / 1000;
      close(member.session, {.code = ReasonCode::slow_to_load, .a = seconds});
      continue;
    }
    const auto& background = rooms_.evaluation.background();
    const bool still = rooms_.pause.paused() && (member.local || member.parked.compared);
    const bool busy = still || member.trial != 0 || (background && background->session == member.session);
    if (member.state == MemberState::parked && !busy && now >= member.parked.trial_due) {
      const auto& delegation = rooms_.local.delegation();
      parking_.watch(member, run_.batch(), delegation ? delegation->worker : 0, now);
    }
    if (now - member.heartbeat_sent >= run_.config.heartbeat) {
      member.heartbeat_sent = now;
      run_.act(ActionKind::heartbeat).session = member.session;
    }
    ++i;
  }
}

}  // namespace motley::cluster
