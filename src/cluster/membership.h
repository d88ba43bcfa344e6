#pragma once
// Who is connected and how far each has come; and what is known of a worker over all its sessions. Value types; one
// thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "cluster/lease.h"

namespace motley::cluster {

enum class MemberState : std::uint8_t {
  loading,      // builds its model, opens its data
  syncing,      // admitted; receives the weights
  calibrating,  // its speed is measured beside the run
  member,       // takes part in passes
  parked,       // would hold up the others; measured again every now and then
  yielding,     // finishes what it has, then leaves
};

struct Member {
  SessionId session = 0;
  WorkerId worker = 0;  // 0 while loading
  bool local = false;   // same process
  MemberState state = MemberState::loading;
  Time opened{};
  Time heard{};
  Time heartbeat_sent{};
  bool streams = false;            // gets every new version as it is made
  std::uint64_t holds = 0;         // the version it computes with, unless it streams
  LeaseId trial = 0;               // the calibration it computes; 0: none
  bool waits_for_release = false;  // to be measured
  Time trial_due{};                // while parked: when to measure it again
  Time link_due{};                 // while parked: when to send it a version, to see how long that takes
  Time link_tried{};               // when one was sent
  bool compared = false;           // while parked: only until others have shown what they do alone
  Time help_due{};                 // after it had a share in vain: when it may have one again, unless it becomes faster
  std::uint64_t share = 0;         // samples of the newest train pass
  std::uint32_t left_out = 0;      // train passes in a row without a share
  std::uint32_t in_vain = 0;       // times it had a share and the steps were no shorter for it
  bool failed_alone = false;       // a stretch went wrong: leases from now on, whose rules know what to do about it
  bool failed_aside = false;       // an evaluation beside the training did not end well, or in time

  [[nodiscard]] bool admitted() const noexcept { return state != MemberState::loading; }
};

/// Outlives sessions, so that strikes cannot be shed by reconnecting.
struct WorkerRecord {
  WorkerId worker = 0;
  std::uint32_t strikes = 0;
  std::uint64_t struck_at = 0;  // version of the last strike
  bool excluded = false;
};

class Membership {
 public:
  static constexpr std::uint32_t kStrikesMax = 3;
  static constexpr std::uint64_t kStrikeDecaySteps = 100;  // one strike is forgiven after so many steps

  Member& open(SessionId session, bool local, Time now);
  void close(SessionId session);
  [[nodiscard]] Member* find(SessionId session) noexcept;
  [[nodiscard]] const Member* find(SessionId session) const noexcept;
  /// In the order the sessions were opened.
  [[nodiscard]] std::span<Member> all() noexcept { return members_; }
  [[nodiscard]] std::span<const Member> all() const noexcept { return members_; }
  [[nodiscard]] std::size_t count(MemberState state) const noexcept;
  [[nodiscard]] std::size_t admitted() const noexcept;
  /// Moves every point in time by `gap`, but none beyond `now`.
  void shift(Duration gap, Time now) noexcept;

  WorkerRecord& record(WorkerId worker);
  /// Adds a strike at `version`; true if it was one too many.
  bool strike(WorkerId worker, std::uint64_t version);

 private:
  std::vector<Member> members_;
  std::vector<WorkerRecord> records_;
};

}  // namespace motley::cluster
