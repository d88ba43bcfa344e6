#include "modes/local/local_mode.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "base/assert.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

void StretchMachine::enter(StretchState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

bool StretchMachine::may_follow(StretchState from, StretchState to) noexcept {
  switch (from) {
    case StretchState::none:
      return to == StretchState::lent;
    case StretchState::lent:
      return to == StretchState::cut || to == StretchState::none;
    case StretchState::cut:
      return to == StretchState::none;
  }
  return false;
}

Member* LocalMode::soloist() noexcept {
  Member* only = nullptr;
  for (Member& member : run_.roster.all()) {
    if (member.state == MemberState::yielding) return nullptr;
    if (member.state != MemberState::member) continue;
    if (only != nullptr) return nullptr;
    only = &member;
  }
  return only != nullptr && only->local && !only->shown.failed_alone ? only : nullptr;
}

std::uint64_t LocalMode::steps_to_boundary() const noexcept {
  const std::uint64_t left = run_.steps() - run_.version;
  if (run_.config.test_samples == 0 && run_.config.holds == Holds::never) return left;
  return std::min(left, Marks{run_.config.evaluate_every}.after(run_.batches, run_.version) - run_.version);
}

bool LocalMode::open(Time now) {
  if (!may_open() || run_.config.holds == Holds::steps) return false;
  Member* member = soloist();
  if (member == nullptr) return false;
  run_.opened_any = true;
  state_.enter(StretchState::lent);
  stretch_ = Stretch{.session = member->session,
                     .worker = member->worker,
                     .lease = run_.next_lease(),
                     .steps = {run_.version, steps_to_boundary()}};
  begin_step(now);
  member->streams = false;
  member->holds = run_.version;
  Action& action = run_.act(ActionKind::lend, {ReasonCode::alone, member->worker, stretch_->steps.count});
  action.session = member->session;
  action.lease = stretch_->lease;
  action.range = stretch_->steps;
  return true;
}

void LocalMode::take(const WorkEvent& event, Time now) {
  std::visit([&](const auto& concrete) { on(concrete, now); }, event);
}

void LocalMode::on(const StretchStep& event, Time now) {
  if (!stretch_ || stretch_->session != event.session || stretch_->lease != event.lease) return;
  MOTLEY_ASSERT(run_.version < stretch_->steps.end());
  ++run_.version;
  host_.version_made(false, {}, now);
  begin_step(now);
}

void LocalMode::begin_step(Time now) {
  stretch_->since = now;
  stretch_->deadline = now + run_.pace.allowance(PassKind::train, stretch_->worker, run_.batch());
}

void LocalMode::on(const StretchEnded& event, Time now) {
  if (!stretch_ || stretch_->session != event.session || stretch_->lease != event.lease) return;
  MOTLEY_ASSERT(event.failed || state_ == StretchState::cut || run_.version == stretch_->steps.end());
  run_.roster.find(event.session)->shown.failed_alone = event.failed;
  end();
  host_.stretch_ended(now);
}

void LocalMode::settle(Time) {
  if (state_ != StretchState::lent) return;
  if (run_.stopping) return cut({.code = ReasonCode::stopped});
  for (const Member& member : run_.roster.all()) {
    const bool lone = member.session == stretch_->session;
    if (!lone && member.state == MemberState::member) return cut({.code = ReasonCode::pays, .worker = member.worker});
    if (lone && member.state != MemberState::member) return cut({.code = ReasonCode::yielded, .worker = member.worker});
  }
  if (host_.evaluation_waits() && run_.version < stretch_->steps.end()) cut({.code = ReasonCode::evaluation});
}

void LocalMode::cut(Reason reason) {
  if (state_ != StretchState::lent) return;
  state_.enter(StretchState::cut);
  Action& action = run_.act(ActionKind::cut, reason);
  action.session = stretch_->session;
  action.lease = stretch_->lease;
}

void LocalMode::end() {
  state_.enter(StretchState::none);
  stretch_.reset();
  for (Member& member : run_.roster.all())
    if (member.state == MemberState::member && !member.streams) host_.take_in_again(member);
  host_.all_idle();
}

void LocalMode::session_lost(fleet::SessionId session, Reason reason) {
  if (busy(session)) cut(reason);
}

void LocalMode::session_forgotten(fleet::SessionId session) {
  if (busy(session)) end();
}

// The thread that computes hangs: its leases will be overdue as well, and then others get them.
void LocalMode::watch(Time now) {
  if (!stretch_ || now < stretch_->deadline) return;
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - stretch_->since).count();
  const Reason reason{.code = ReasonCode::overdue, .worker = stretch_->worker, .a = static_cast<std::uint64_t>(waited)};
  run_.act(ActionKind::warn, reason);
  cut(reason);
  run_.roster.find(stretch_->session)->shown.failed_alone = true;
  end();
}

void LocalMode::shift(Duration gap, Time) noexcept {
  if (stretch_) stretch_->since += gap, stretch_->deadline += gap;
}

}  // namespace motley::modes
