#pragma once
// The leases of the open pass: who has which positions, until when, and what has come back. Value types; one thread at
// a time.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "fleet/member.h"
#include "modes/work/bearing.h"
#include "modes/work/coverage.h"
#include "modes/work/interval_set.h"

namespace motley::modes {

using fleet::SessionId;
using fleet::WorkerId;

enum class LeaseState : std::uint8_t { granted, begun, ended };

class LeaseMachine {
 public:
  operator LeaseState() const noexcept { return state_; }
  /// REQUIRES may_follow(the state it is in, next).
  void enter(LeaseState next);
  /// A lease ends once.
  [[nodiscard]] static bool may_follow(LeaseState from, LeaseState to) noexcept;

 private:
  LeaseState state_ = LeaseState::granted;
};

/// Magnitudes of elements of a contribution: sums over its weight.
struct Largest {
  double gradient = 0, statistic = 0;
};

struct Lease {
  enum class ChunkState : std::uint8_t { awaited, buffered, settled };  // buffered: arrived before Begin
  struct Report {
    std::uint64_t samples = 0;
    Time at{};
  };
  /// Where the range ends towards another lease, and what is agreed with that one.
  struct Boundary {
    Interval ceiling{};       // the range may grow up to this
    LeaseId partner = 0;      // the lease on the other side; 0: none
    std::uint64_t trims = 0;  // numbers of Trim
    bool asked = false;       // to give up positions; not answered yet
    SessionId heir = 0;       // of these positions; 0: the partner
  };
  struct Due {
    Time deadline{};
    Time unheard_deadline{};
    Duration patience{};  // from whatever comes of it on; 0: its deadline stays
    Time latest{};        // then: but not beyond this
    bool passed = false;
    bool unheard = false;  // passed sooner than it would have, as nothing is heard of the worker: no measurement
  };
  /// Whether what comes of it is believed.
  struct Doubt {
    bool withheld = false;             // it does not count before somebody else comes to the same
    bool compared = false;             // with claims for just these positions: nothing of it goes to others
    std::uint32_t unlike = 0;          // claims that it differs from, by bit
    std::optional<Bearing> bearing{};  // which way its gradient points, once that is known
  };

  LeaseId id = 0;
  SessionId session = 0;
  WorkerId worker = 0;
  Interval range{};       // promised to it; as begun once begun
  bool from_end = false;  // computed from the last position downwards
  Boundary boundary{};
  LeaseMachine state{};
  bool first_of_pass = false;  // of this worker: its time is a measurement
  Time granted{};
  Due due{};
  Report first{}, last{};  // of Progress; no samples: none came yet
  std::vector<ChunkState> chunks{};
  std::uint32_t settled = 0;        // chunks that were accepted or found covered
  Largest largest{};                // of the chunks that came
  double weight = 0, loss_sum = 0;  // as begun
  std::uint64_t overlapped = 0;     // likewise: LeaseBegun::overlapped
  Doubt doubt{};
  bool lossy = false;  // what came of it has what a codec left out of gradients before

  [[nodiscard]] bool live() const noexcept { return state != LeaseState::ended; }
  /// Something new came of it.
  void moves(Time now) noexcept {
    if (due.patience > Duration{}) due.deadline = std::max(due.deadline, std::min(due.latest, now + due.patience));
  }
  [[nodiscard]] bool all_arrived() const noexcept {
    return std::ranges::find(chunks, ChunkState::awaited) == chunks.end();
  }
  /// What `count` positions of the range leave of it.
  [[nodiscard]] Interval part(std::uint64_t count) const noexcept {
    return {from_end ? range.end() - count : range.first, count};
  }
};

class LeaseTable {
 public:
  /// Forgets all leases.
  void clear() noexcept { used_ = 0; }
  /// References stay valid until the next add(). REQUIRES a number that rises.
  Lease& add(LeaseId id, SessionId session, WorkerId worker, Interval range, std::uint32_t chunks);
  [[nodiscard]] Lease* find(LeaseId id) noexcept;
  [[nodiscard]] const Lease* find(LeaseId id) const noexcept;
  [[nodiscard]] std::span<Lease> all() noexcept { return {leases_.data(), used_}; }
  [[nodiscard]] std::span<const Lease> all() const noexcept { return {leases_.data(), used_}; }
  [[nodiscard]] bool has_live(SessionId session) const noexcept;
  /// Positions granted to the session and not ended.
  [[nodiscard]] std::uint64_t outstanding(SessionId session) const noexcept;
  [[nodiscard]] bool has_overdue(SessionId session) const noexcept;

 private:
  std::vector<Lease> leases_;  // the first used_ are in use; the rest keep their memory
  std::size_t used_ = 0;
};

}  // namespace motley::modes
