#pragma once
// Who is here: one member a session; and what is known of a worker over all its sessions. It knows no run, pass or
// lease. Value types; one thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "fleet/member.h"

namespace motley::fleet {

/// Outlives sessions, so that strikes cannot be shed by reconnecting.
struct WorkerRecord {
  WorkerId worker = 0;
  std::uint32_t strikes = 0;
  std::uint64_t struck_at = 0;  // version of the last strike
  bool excluded = false;
  std::uint32_t handed_back = 0;  // leases, less those that were made since
};

class Roster {
 public:
  static constexpr std::uint32_t kStrikesMax = 3;
  static constexpr std::uint32_t kHandedBackMax = 3;       // WorkerRecord's; from then on each is a strike
  static constexpr std::uint64_t kStrikeDecaySteps = 100;  // one strike is forgiven after so many steps

  Member& open(SessionId session, bool local, Time now);
  void close(SessionId session);
  [[nodiscard]] Member* find(SessionId session) noexcept;
  [[nodiscard]] const Member* find(SessionId session) const noexcept;
  /// A device of the head's own process, that is here.
  [[nodiscard]] bool is_local(WorkerId worker) const noexcept;
  /// Likewise, of the head's machine.
  [[nodiscard]] bool is_beside(WorkerId worker) const noexcept;
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

}  // namespace motley::fleet
