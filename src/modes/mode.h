#pragma once
// A mode is a way to make steps of work: who computes what, what counts of it, when a version is done. Versions and
// passes are its own affair. What is to be done goes to Run::act(), and carries all that is needed to do it. A mode is
// driven by one thread at a time; it knows no other mode.

#include <variant>

#include "base/time.h"
#include "fleet/member.h"
#include "modes/action.h"
#include "modes/event.h"

namespace motley::modes {

using WorkEvent = std::variant<LeaseBegun, ChunkArrived, LeaseProgress, LeaseFinished, LeaseFailed, PassFinished,
                               DelegatedStep, DelegationEnded>;

class Mode {
 public:
  virtual ~Mode() = default;
  /// Opens training at the version of the day for the members there are; false if that is not for this mode now.
  /// REQUIRES closed(), and at least one member.
  virtual bool open(Time now) = 0;
  [[nodiscard]] virtual bool closed() const noexcept = 0;
  /// Something happened to work; what is of another mode, or gone by, has no effect.
  virtual void take(const WorkEvent& event, Time now) = 0;
  /// Nothing more comes of what this session has in hand. It is about to be forgotten.
  virtual void session_lost(fleet::SessionId session, Reason reason) = 0;
  /// ... and is.
  virtual void session_forgotten(fleet::SessionId) {}
  /// The session has work in hand.
  [[nodiscard]] virtual bool busy(fleet::SessionId session) const noexcept = 0;
  /// Something is overdue, maybe.
  virtual void watch(Time now) = 0;
  /// After each event: what follows from it where this is open.
  virtual void settle(Time now) = 0;
  /// The machine slept for `gap`: nobody is late for that.
  virtual void shift(Duration gap, Time now) noexcept = 0;
};

/// What modes need of whoever composes them.
class Host {
 public:
  virtual ~Host() = default;
  /// It did something wrong; the third time it is excluded and its session closed.
  virtual void strike(fleet::WorkerId worker) = 0;
  /// Likewise, by a second look: that is forgiven for right answers alone.
  virtual void refute(fleet::WorkerId worker) = 0;
  /// It may leave now, if it wants to.
  virtual void idle(fleet::SessionId session) = 0;
  virtual void all_idle() = 0;
  /// Nobody else is left.
  virtual void take_in_parked() = 0;
  /// It takes part again, after another mode had it.
  virtual void take_in_again(fleet::Member& member) = 0;
  /// A new version of the weights is made, in work shared by several or not.
  virtual void version_made(bool shared, Duration took, Time now) = 0;
  /// Everybody has evaluated.
  virtual void evaluated() = 0;
  /// The version of the day is to be evaluated before the next step, by everybody: nobody does it in the background.
  [[nodiscard]] virtual bool evaluation_waits() const noexcept = 0;
  /// What was delegated has ended, and somebody may evaluate in the background what it led to.
  virtual void delegation_ended(Time now) = 0;
  /// The run is over at once.
  virtual void finish(Reason reason) = 0;
};

}  // namespace motley::modes
