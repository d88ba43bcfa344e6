#pragma once
// One worker alone: while a device of the head is the only member, it makes steps by itself. They are lent in one
// piece, the stretch, and it ends where somebody else needs the coordinator. One thread at a time.

#include <cstdint>
#include <optional>

#include "modes/mode.h"
#include "modes/run.h"

namespace motley::modes {

enum class StretchState : std::uint8_t { none, lent, cut };

class StretchMachine {
 public:
  operator StretchState() const noexcept { return state_; }
  /// REQUIRES may_follow(the state it is in, next).
  void enter(StretchState next);
  [[nodiscard]] static bool may_follow(StretchState from, StretchState to) noexcept;

 private:
  StretchState state_ = StretchState::none;
};

struct Stretch {
  fleet::SessionId session = 0;
  fleet::WorkerId worker = 0;
  LeaseId lease = 0;
  Interval steps{};  // lent
  Time since{};      // the step it is at began
  Time deadline{};   // of that step
};

class LocalMode final : public Mode {
 public:
  /// REQUIRES both outlive this.
  LocalMode(Run& run, Host& host) : run_(run), host_(host) {}

  bool open(Time now) override;
  [[nodiscard]] bool closed() const noexcept override { return !stretch_; }
  void take(const WorkEvent& event, Time now) override;
  void session_lost(fleet::SessionId session, Reason reason) override;
  void session_forgotten(fleet::SessionId session) override;
  [[nodiscard]] bool busy(fleet::SessionId session) const noexcept override {
    return stretch_ && stretch_->session == session;
  }
  void watch(Time now) override;
  void settle(Time now) override;
  void shift(Duration gap, Time now) noexcept override;

  /// A pass of shared work was closed, so that more is known of what it takes.
  void pass_shared() noexcept { ++passes_; }
  /// Enough of them were.
  [[nodiscard]] bool may_open() const noexcept {
    return run_.config.solo_after != 0 && passes_ >= run_.config.solo_after;
  }
  /// A step was made whose result is not there yet: the next one begins. REQUIRES !closed().
  void made_unseen(Time now) { begin_step(now); }
  [[nodiscard]] const std::optional<Stretch>& stretch() const noexcept { return stretch_; }

 private:
  template <class Other>
  void on(const Other&, Time) {}
  void on(const StretchStep& event, Time now);
  void on(const StretchEnded& event, Time now);
  void begin_step(Time now);
  void cut(Reason reason);
  void end();
  /// Who would make steps alone, if anybody.
  [[nodiscard]] fleet::Member* soloist() noexcept;
  /// Steps until an evaluation is due, the run is to be held, or it is over.
  [[nodiscard]] std::uint64_t steps_to_boundary() const noexcept;

  Run& run_;
  Host& host_;
  StretchMachine state_;
  std::optional<Stretch> stretch_;  // unless none
  std::uint64_t passes_ = 0;        // shared ones, as far as a stretch waits for them
};

}  // namespace motley::modes
