#pragma once
// Between steps: the run is paused, so that no work is open and no worker of this process computes, until it is
// resumed. The pause of a step comes before its evaluation, which then goes by what was said; that of an eval point
// after it. One thread at a time.

#include <cstdint>

namespace motley::cluster {

enum class PauseState : std::uint8_t {
  none,
  step_due,             // after a step
  eval_point_due,       // after an eval point, once that is evaluated
  step_eval_point_due,  // both, in this order
  paused,
  paused_eval_point_due,  // of a step; that of the eval point comes after
};

enum class Pause : std::uint8_t { none, step, eval_point };

class PauseMachine {
 public:
  [[nodiscard]] PauseState state() const noexcept { return state_; }
  /// A version was made, or the run starts at one.
  void due(bool step, bool eval_point);
  /// Something begins now: begin() would say what.
  [[nodiscard]] bool is_due(bool evaluation_waits) const noexcept {
    return state_ == PauseState::step_due || state_ == PauseState::step_eval_point_due ||
           (state_ == PauseState::eval_point_due && !evaluation_waits);
  }
  /// What begins now, if anything is due and nothing is to come before it. REQUIRES !paused().
  Pause begin(bool evaluation_waits);
  /// REQUIRES paused().
  void resume();
  [[nodiscard]] bool paused() const noexcept {
    return state_ == PauseState::paused || state_ == PauseState::paused_eval_point_due;
  }
  [[nodiscard]] static bool may_follow(PauseState from, PauseState to) noexcept;

 private:
  void enter(PauseState next);

  PauseState state_ = PauseState::none;
};

}  // namespace motley::cluster
