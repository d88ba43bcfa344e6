#pragma once
// Between steps: the run is held, so that no work is open and no worker of this process computes, until it is released.
// The hold of a step comes before its evaluation, which then goes by what was said; that of a mark after it. One thread
// at a time.

#include <cstdint>

namespace motley::cluster {

enum class HoldState : std::uint8_t {
  none,
  step_due,       // after a step
  mark_due,       // after a mark, once that is evaluated
  step_mark_due,  // both, in this order
  held,
  held_mark_due,  // of a step; that of the mark comes after
};

enum class Hold : std::uint8_t { none, step, mark };

class HoldMachine {
 public:
  [[nodiscard]] HoldState state() const noexcept { return state_; }
  /// A version was made, or the run starts at one.
  void due(bool step, bool mark);
  /// Something begins now: begin() would say what.
  [[nodiscard]] bool is_due(bool evaluation_waits) const noexcept {
    return state_ == HoldState::step_due || state_ == HoldState::step_mark_due ||
           (state_ == HoldState::mark_due && !evaluation_waits);
  }
  /// What begins now, if anything is due and nothing is to come before it. REQUIRES !held().
  Hold begin(bool evaluation_waits);
  /// REQUIRES held().
  void release();
  [[nodiscard]] bool held() const noexcept { return state_ == HoldState::held || state_ == HoldState::held_mark_due; }
  [[nodiscard]] static bool may_follow(HoldState from, HoldState to) noexcept;

 private:
  void enter(HoldState next);

  HoldState state_ = HoldState::none;
};

}  // namespace motley::cluster
