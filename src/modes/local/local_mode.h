#pragma once
// One worker alone: while a device of the head is the only member, it makes steps by itself. They are delegated in one
// piece, the delegation, and it ends where somebody else needs the coordinator. One thread at a time.

#include <cstdint>
#include <optional>

#include "modes/mode.h"
#include "modes/run.h"

namespace motley::modes {

enum class DelegationState : std::uint8_t { none, delegated, cut };

class DelegationMachine {
 public:
  operator DelegationState() const noexcept { return state_; }
  /// REQUIRES may_follow(the state it is in, next).
  void enter(DelegationState next);
  [[nodiscard]] static bool may_follow(DelegationState from, DelegationState to) noexcept;

 private:
  DelegationState state_ = DelegationState::none;
};

struct Delegation {
  fleet::SessionId session = 0;
  fleet::WorkerId worker = 0;
  LeaseId lease = 0;
  Interval steps{};  // delegated
  Time since{};      // the step it is at began
  Time deadline{};   // of that step
};

class LocalMode final : public Mode {
 public:
  /// REQUIRES both outlive this.
  LocalMode(Run& run, Host& host) : run_(run), host_(host) {}

  bool open(Time now) override;
  [[nodiscard]] bool closed() const noexcept override { return !delegation_; }
  void take(const WorkEvent& event, Time now) override;
  void session_lost(fleet::SessionId session, Reason reason) override;
  void session_forgotten(fleet::SessionId session) override;
  [[nodiscard]] bool busy(fleet::SessionId session) const noexcept override {
    return delegation_ && delegation_->session == session;
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
  [[nodiscard]] const std::optional<Delegation>& delegation() const noexcept { return delegation_; }

 private:
  template <class Other>
  void on(const Other&, Time) {}
  void on(const DelegatedStep& event, Time now);
  void on(const DelegationEnded& event, Time now);
  void begin_step(Time now);
  void cut(Reason reason);
  void end();
  /// Who would make steps alone, if anybody.
  [[nodiscard]] fleet::Member* soloist() noexcept;
  /// Steps until an evaluation is due, the run is to be paused, or it is over.
  [[nodiscard]] std::uint64_t steps_to_boundary() const noexcept;

  Run& run_;
  Host& host_;
  DelegationMachine state_;
  std::optional<Delegation> delegation_;  // unless none
  std::uint64_t passes_ = 0;              // shared ones, as far as a delegation waits for them
};

}  // namespace motley::modes
