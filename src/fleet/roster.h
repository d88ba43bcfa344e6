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
  std::uint32_t strikes = 0;    // that fade with steps
  std::uint64_t struck_at = 0;  // version of the last one of these
  std::uint32_t refuted = 0;    // strikes by second looks, which fade with shares that were looked at and right
  std::uint32_t right = 0;      // such shares since the last of these, or since one of them was forgiven

  [[nodiscard]] std::uint32_t all_strikes() const noexcept { return strikes + refuted; }
  bool excluded = false;
  std::uint32_t handed_back = 0;  // leases, less those that were made since
};

class Roster {
 public:
  static constexpr std::uint32_t kStrikesMax = 3;
  static constexpr std::uint32_t kHandedBackMax = 3;       // WorkerRecord's; from then on each is a strike
  static constexpr std::uint64_t kStrikeDecaySteps = 100;  // one that fades with steps is forgiven after so many
  static constexpr std::uint32_t kRightToForgive = 32;     // looks, for one strike by a look

  Member& open(SessionId session, bool local, Time now);
  void close(SessionId session);
  [[nodiscard]] Member* find(SessionId session) noexcept;
  [[nodiscard]] const Member* find(SessionId session) const noexcept;
  /// A device of the head's own process, that is here.
  [[nodiscard]] bool is_local(WorkerId worker) const noexcept;
  /// Of those that are idle the one that is so longest; null: nobody is.
  [[nodiscard]] const Member* idle(Time now) const noexcept;
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
  /// Likewise, where a second look showed that it was wrong.
  bool refute(WorkerId worker, std::uint64_t version);
  /// A share of it was looked at, and is right.
  void confirm(WorkerId worker);

 private:
  void forgive(WorkerRecord& known, std::uint64_t version) noexcept;
  bool judge(WorkerRecord& known) noexcept;

  std::vector<Member> members_;
  std::vector<WorkerRecord> records_;
};

}  // namespace motley::fleet
