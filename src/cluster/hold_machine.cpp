#include "cluster/hold_machine.h"

#include "base/assert.h"

namespace motley::cluster {

bool HoldMachine::may_follow(HoldState from, HoldState to) noexcept {
  switch (from) {
    case HoldState::none:
      return to == HoldState::step_due || to == HoldState::mark_due || to == HoldState::step_mark_due;
    case HoldState::step_due:
    case HoldState::mark_due:
      return to == HoldState::held;
    case HoldState::step_mark_due:
      return to == HoldState::held_mark_due;
    case HoldState::held:
      return to == HoldState::none;
    case HoldState::held_mark_due:
      return to == HoldState::mark_due;
  }
  return false;
}

void HoldMachine::enter(HoldState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

void HoldMachine::due(bool step, bool mark) {
  if (!step && !mark) return;
  enter(step ? (mark ? HoldState::step_mark_due : HoldState::step_due) : HoldState::mark_due);
}

Hold HoldMachine::begin(bool evaluation_waits) {
  switch (state_) {
    case HoldState::step_due:
      enter(HoldState::held);
      return Hold::step;
    case HoldState::step_mark_due:
      enter(HoldState::held_mark_due);
      return Hold::step;
    case HoldState::mark_due:
      if (evaluation_waits) return Hold::none;
      enter(HoldState::held);
      return Hold::mark;
    default:
      return Hold::none;
  }
}

void HoldMachine::release() { enter(state_ == HoldState::held_mark_due ? HoldState::mark_due : HoldState::none); }

}  // namespace motley::cluster
