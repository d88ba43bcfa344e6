// The run is held: no pass is open and no stretch lent, and no worker of this process computes, until it is released.

#include <algorithm>

#include "base/assert.h"
#include "cluster/coordinator_machine.h"

namespace motley::cluster {

bool CoordinatorMachine::at_mark() const noexcept {
  return version_ >= steps() || Marks{config_.evaluate_every}.at(batches_, version_);
}

void CoordinatorMachine::note_holds() {
  step_hold_due_ = config_.holds == Holds::steps;
  mark_hold_due_ = config_.holds != Holds::never && at_mark();
}

// The hold of a step comes before its evaluation, which then goes by what was said; that of a mark after it.
bool CoordinatorMachine::hold() {
  if (held_) return true;
  if (!step_hold_due_ && (!mark_hold_due_ || evaluation_pending_)) return false;
  held_ = true;
  Action& action = act(ActionKind::hold, {.code = ReasonCode::held});
  action.version = version_;
  action.urgent = std::exchange(step_hold_due_, false);
  if (!action.urgent) mark_hold_due_ = false;
  return true;
}

void CoordinatorMachine::on(const Released& event, Time now) {
  if (!held_ || event.version != version_ || finished_) return;
  held_ = false;
  for (std::size_t i = 0; i < members_.all().size(); ++i) {
    Member& member = members_.all()[i];
    if (!std::exchange(member.waits_for_release, false) || member.trial != 0) continue;
    if (member.state == MemberState::syncing || member.state == MemberState::calibrating) consider(member, now);
  }
}

}  // namespace motley::cluster
