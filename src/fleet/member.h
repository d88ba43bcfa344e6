#pragma once
// One session with a worker, and how far it has come. States change in one place, enter(), by one table. Value types;
// one thread at a time.

#include <chrono>
#include <cstdint>

#include "base/batch_plan.h"
#include "base/time.h"

namespace motley::fleet {

using SessionId = std::uint64_t;  // numbered by whoever drives the machine; never reused
using WorkerId = std::uint64_t;   // one worker keeps its number over all its sessions; never 0
using TrialId = std::uint64_t;    // of a calibration; 0: none

enum class MemberState : std::uint8_t {
  loading,      // builds its model, opens its data
  syncing,      // admitted; receives the weights
  calibrating,  // its speed is measured beside the run
  member,       // takes part
  parked,       // too slow for now: would hold up the others; measured again every now and then
  yielding,     // finishes what it has, then leaves
  excluded,     // struck out; its session is about to be closed
};

class MemberMachine {
 public:
  [[nodiscard]] MemberState state() const noexcept { return state_; }
  operator MemberState() const noexcept { return state_; }
  /// REQUIRES may_follow(state(), next).
  void enter(MemberState next);
  [[nodiscard]] static bool may_follow(MemberState from, MemberState to) noexcept;

 private:
  MemberState state_ = MemberState::loading;
};

struct Member {
  struct Parked {
    Time trial_due{};       // when to measure it again
    Time link_due{};        // when to send it a version, to see how long that takes
    Time link_tried{};      // when one was sent
    bool compared = false;  // only until others have shown what they do alone
  };
  struct Share {
    std::uint64_t samples = 0;   // of the newest train pass
    std::uint32_t left_out = 0;  // train passes in a row without a share
    std::uint32_t in_vain = 0;   // times it had a share and the steps were no shorter for it
    Time due{};                  // after it had one in vain: when it may have one again, unless it becomes faster
  };
  /// What its device has shown, for better or worse.
  struct Shown {
    bool unproven = false;      // nothing is shared with it until its device was compared with another
    bool failed_alone = false;  // a delegation went wrong: leases from now on, whose rules know what to do about it
    bool failed_background = false;    // an evaluation beside the training did not end well, or in time, or right
    bool compared_background = false;  // what it evaluated came to the same as what all others did
    std::uint64_t numbers = 0;         // a hash of random numbers that its device draws from a fixed seed; 0: not known
    bool watched = false;              // its device may leave work undone in silence: looked at from the first pass on
  };

  SessionId session = 0;
  WorkerId worker = 0;  // 0 while loading
  bool local = false;   // same process
  MemberMachine state{};
  Time opened{};
  Time heard{};
  Time heartbeat_sent{};
  bool synced = false;             // had the weights once
  bool streams = false;            // gets every new version as it is made
  std::uint64_t holds = 0;         // the version it computes with, unless it streams
  TrialId trial = 0;               // the calibration it computes
  bool waits_for_release = false;  // to be measured
  Parked parked{};
  Share share{};
  Shown shown{};

  [[nodiscard]] bool admitted() const noexcept { return state != MemberState::loading; }
  /// Holds a place, and has shown nothing in all this time.
  [[nodiscard]] bool idle(Time now) const noexcept {
    constexpr Duration kToBegin = std::chrono::seconds(10);
    return !local && (!synced || shown.unproven) && now - opened >= kToBegin;
  }
};

}  // namespace motley::fleet
