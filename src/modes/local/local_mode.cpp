#include "modes/local/local_mode.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "base/assert.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

void DelegationMachine::enter(DelegationState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

bool DelegationMachine::may_follow(DelegationState from, DelegationState to) noexcept {
  switch (from) {
    case DelegationState::none:
      return to == DelegationState::delegated;
    case DelegationState::delegated:
      return to == DelegationState::cut || to == DelegationState::none;
    case DelegationState::cut:
      return to == DelegationState::none;
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
  if (run_.config.test_samples == 0 && run_.config.pauses == Pauses::never) return left;
  return std::min(left, EvalPoints{run_.config.evaluate_every}.after(run_.batches, run_.version) - run_.version);
}

bool LocalMode::open(Time now) {
  if (!may_open() || run_.config.pauses == Pauses::steps) return false;
  Member* member = soloist();
  if (member == nullptr) return false;
  run_.opened_any = true;
  state_.enter(DelegationState::delegated);
  delegation_ = Delegation{.session = member->session,
                           .worker = member->worker,
                           .lease = run_.next_lease(),
                           .steps = {run_.version, steps_to_boundary()}};
  begin_step(now);
  member->streams = false;
  member->holds = run_.version;
  Action& action = run_.act(ActionKind::delegate, {ReasonCode::alone, member->worker, delegation_->steps.count});
  action.session = member->session;
  action.lease = delegation_->lease;
  action.range = delegation_->steps;
  return true;
}

void LocalMode::take(const WorkEvent& event, Time now) {
  std::visit([&](const auto& concrete) { on(concrete, now); }, event);
}

void LocalMode::on(const DelegatedStep& event, Time now) {
  if (!delegation_ || delegation_->session != event.session || delegation_->lease != event.lease) return;
  MOTLEY_ASSERT(run_.version < delegation_->steps.end());
  ++run_.version;
  host_.version_made(false, {}, now);
  begin_step(now);
}

void LocalMode::begin_step(Time now) {
  delegation_->since = now;
  delegation_->deadline = now + run_.performance.allowance(PassKind::train, delegation_->worker, run_.batch());
}

void LocalMode::on(const DelegationEnded& event, Time now) {
  if (!delegation_ || delegation_->session != event.session || delegation_->lease != event.lease) return;
  MOTLEY_ASSERT(event.failed || state_ == DelegationState::cut || run_.version == delegation_->steps.end());
  run_.roster.find(event.session)->shown.failed_alone = event.failed;
  end();
  host_.delegation_ended(now);
}

void LocalMode::settle(Time) {
  if (state_ != DelegationState::delegated) return;
  if (run_.stopping) return cut({.code = ReasonCode::stopped});
  for (const Member& member : run_.roster.all()) {
    const bool lone = member.session == delegation_->session;
    if (!lone && member.state == MemberState::member) return cut({.code = ReasonCode::pays, .worker = member.worker});
    if (lone && member.state != MemberState::member) return cut({.code = ReasonCode::yielded, .worker = member.worker});
  }
  if (host_.evaluation_waits() && run_.version < delegation_->steps.end()) cut({.code = ReasonCode::evaluation});
}

void LocalMode::cut(Reason reason) {
  if (state_ != DelegationState::delegated) return;
  state_.enter(DelegationState::cut);
  Action& action = run_.act(ActionKind::cut, reason);
  action.session = delegation_->session;
  action.lease = delegation_->lease;
}

void LocalMode::end() {
  state_.enter(DelegationState::none);
  delegation_.reset();
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
  if (!delegation_ || now < delegation_->deadline) return;
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - delegation_->since).count();
  const Reason reason{
      .code = ReasonCode::overdue, .worker = delegation_->worker, .a = static_cast<std::uint64_t>(waited)};
  run_.act(ActionKind::warn, reason);
  cut(reason);
  run_.roster.find(delegation_->session)->shown.failed_alone = true;
  end();
}

void LocalMode::shift(Duration gap, Time) noexcept {
  if (delegation_) delegation_->since += gap, delegation_->deadline += gap;
}

}  // namespace motley::modes
