// One worker alone: steps lent in one piece, ended where somebody else needs the coordinator.

#include <algorithm>

#include "base/assert.h"
#include "cluster/coordinator_machine.h"

namespace motley::cluster {

Member* CoordinatorMachine::soloist() noexcept {
  Member* only = nullptr;
  for (Member& member : members_.all()) {
    if (member.state == MemberState::yielding) return nullptr;
    if (member.state != MemberState::member) continue;
    if (only != nullptr) return nullptr;
    only = &member;
  }
  return only != nullptr && only->local && !only->failed_alone ? only : nullptr;
}

// Steps until an evaluation is due, the run is to be held, or it is over.
std::uint64_t CoordinatorMachine::steps_to_boundary() const noexcept {
  const std::uint64_t left = steps() - version_;
  if (config_.test_samples == 0 && config_.holds == Holds::never) return left;
  return std::min(left, Marks{config_.evaluate_every}.after(batches_, version_) - version_);
}

bool CoordinatorMachine::lend(Time now) {
  if (config_.solo_after == 0 || train_passes_ < config_.solo_after) return false;
  if (config_.holds == Holds::steps) return false;
  Member* member = soloist();
  if (member == nullptr) return false;
  opened_any_ = true;
  stretch_ = OpenStretch{.session = member->session,
                         .worker = member->worker,
                         .lease = leases_.next_id(),
                         .steps = {version_, steps_to_boundary()}};
  begin_lent_step(now);
  member->streams = false;
  member->holds = version_;
  Action& action = act(ActionKind::lend, {ReasonCode::alone, member->worker, stretch_->steps.count});
  action.session = member->session;
  action.lease = stretch_->lease;
  action.range = stretch_->steps;
  return true;
}

void CoordinatorMachine::on(const StretchStep& event, Time now) {
  if (!stretch_ || stretch_->session != event.session || stretch_->lease != event.lease) return;
  MOTLEY_ASSERT(version_ < stretch_->steps.end());
  ++version_;
  evaluation_pending_ = evaluation_pending_ || evaluation_due();
  note_holds();
  begin_lent_step(now);
  if (event.other_batch) {
    train_passes_ = config_.solo_after - 1;
    cut({.code = ReasonCode::other_batch});
  }
}

void CoordinatorMachine::begin_lent_step(Time now) {
  stretch_->since = now;
  stretch_->deadline = now + pace_.allowance(PassKind::train, stretch_->worker, batches_.batch(version_));
}

void CoordinatorMachine::on(const StretchEnded& event, Time now) {
  if (!stretch_ || stretch_->session != event.session || stretch_->lease != event.lease) return;
  MOTLEY_ASSERT(event.failed || stretch_->cut || version_ == stretch_->steps.end());
  members_.find(event.session)->failed_alone = event.failed;
  end_stretch();
  if (evaluation_pending_) evaluate_aside(now);
}

void CoordinatorMachine::cut_if_due() {
  if (stretch_->cut) return;
  if (stopping_) return cut({.code = ReasonCode::stopped});
  for (const Member& member : members_.all()) {
    const bool lone = member.session == stretch_->session;
    if (!lone && member.state == MemberState::member) return cut({.code = ReasonCode::pays, .worker = member.worker});
    if (lone && member.state != MemberState::member) return cut({.code = ReasonCode::yielded, .worker = member.worker});
  }
  // Nobody makes up for what was not evaluated aside.
  if (evaluation_pending_ && version_ < stretch_->steps.end()) cut({.code = ReasonCode::evaluation});
}

void CoordinatorMachine::cut(Reason reason) {
  if (std::exchange(stretch_->cut, true)) return;
  Action& action = act(ActionKind::cut, reason);
  action.session = stretch_->session;
  action.lease = stretch_->lease;
}

void CoordinatorMachine::end_stretch() {
  MOTLEY_ASSERT(stretch_ && !pass_);
  stretch_.reset();
  for (Member& member : members_.all())
    if (member.state == MemberState::member && !member.streams)
      take_in(member, {.code = ReasonCode::joined, .worker = member.worker});
  for (std::size_t i = members_.all().size(); i-- > 0;) dismiss_if_idle(members_.all()[i].session);
}

// The thread that computes hangs: its leases will be overdue as well, and then others get them.
void CoordinatorMachine::watch_stretch(Time now) {
  if (!stretch_ || now < stretch_->deadline) return;
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - stretch_->since).count();
  const Reason reason{.code = ReasonCode::overdue, .worker = stretch_->worker, .a = static_cast<std::uint64_t>(waited)};
  act(ActionKind::warn, reason);
  cut(reason);
  members_.find(stretch_->session)->failed_alone = true;
  end_stretch();
}

}  // namespace motley::cluster
