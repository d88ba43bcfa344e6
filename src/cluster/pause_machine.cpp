#include "cluster/pause_machine.h"

#include "base/assert.h"

namespace motley::cluster {

bool PauseMachine::may_follow(PauseState from, PauseState to) noexcept {
  switch (from) {
    case PauseState::none:
      return to == PauseState::step_due || to == PauseState::eval_point_due || to == PauseState::step_eval_point_due;
    case PauseState::step_due:
    case PauseState::eval_point_due:
      return to == PauseState::paused;
    case PauseState::step_eval_point_due:
      return to == PauseState::paused_eval_point_due;
    case PauseState::paused:
      return to == PauseState::none;
    case PauseState::paused_eval_point_due:
      return to == PauseState::eval_point_due;
  }
  return false;
}

void PauseMachine::enter(PauseState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

void PauseMachine::due(bool step, bool eval_point) {
  if (!step && !eval_point) return;
  enter(step ? (eval_point ? PauseState::step_eval_point_due : PauseState::step_due) : PauseState::eval_point_due);
}

Pause PauseMachine::begin(bool evaluation_waits) {
  switch (state_) {
    case PauseState::step_due:
      enter(PauseState::paused);
      return Pause::step;
    case PauseState::step_eval_point_due:
      enter(PauseState::paused_eval_point_due);
      return Pause::step;
    case PauseState::eval_point_due:
      if (evaluation_waits) return Pause::none;
      enter(PauseState::paused);
      return Pause::eval_point;
    default:
      return Pause::none;
  }
}

void PauseMachine::resume() {
  enter(state_ == PauseState::paused_eval_point_due ? PauseState::eval_point_due : PauseState::none);
}

}  // namespace motley::cluster
