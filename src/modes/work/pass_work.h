#pragma once
// The open pass and all that is known of it, for those who work on it: Grants, Balance, Contributions, Chunks. Its
// states change in one place, PassMachine. One thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "modes/run.h"
#include "modes/work/coverage.h"
#include "modes/work/lease.h"
#include "modes/work/pass.h"

namespace motley::modes {

enum class PassState : std::uint8_t {
  closed,
  collecting,  // contributions; chunks that are whole are summed
  updating,    // a chunk carries the next version already, or all may from now on
  closing,     // all is there: the driver closes it
};

class PassMachine {
 public:
  [[nodiscard]] PassState state() const noexcept { return state_; }
  operator PassState() const noexcept { return state_; }
  /// REQUIRES may_follow(state(), next).
  void enter(PassState next);
  [[nodiscard]] static bool may_follow(PassState from, PassState to) noexcept;

 private:
  PassState state_ = PassState::closed;
};

struct OpenPass {
  PassId id{};
  PassRange range{};
  Time opened{};
  // Of a round: what its positions are, where those that are owed come before those of `range`; and its local steps.
  std::vector<Owed> spans{};
  std::uint64_t local_steps = 0;
};

struct PassWork {
  /// REQUIRES it outlives this.
  explicit PassWork(Run& of) : run(of) {}

  struct Avoid {  // positions that this worker should not get again
    Interval range{};
    WorkerId worker = 0;
    bool poisoned = false;
    bool unlikely = false;   // no other comes near what it said
    bool undecided = false;  // but of these there is one alone
    bool confirmed = false;  // but somebody else says it, too
    bool disputed = false;   // it declared another weight than somebody else
    bool withheld = false;   // somebody else is to come to the same first
  };
  /// What a contribution came to that did not count: it was withheld.
  struct Claim {
    Interval range{};
    LeaseId lease = 0;
    WorkerId worker = 0;
    double weight = 0, loss_sum = 0;
  };
  static constexpr std::size_t kClaimsMax = 32;  // as many as Lease::unlike has bits

  Run& run;
  PassMachine state{};
  std::optional<OpenPass> pass{};  // until it is closed
  Coverage coverage{};
  LeaseTable leases{};
  std::vector<Avoid> avoid{};
  std::vector<Claim> claims{};
  std::optional<Reason> reissue{};  // positions have no promise any more
  bool balance = false;             // somebody may be behind

  [[nodiscard]] bool training() const noexcept { return pass && pass->id.kind == PassKind::train; }
  [[nodiscard]] bool evaluating() const noexcept { return pass && !training(); }
  /// As Run::act(), of the open pass.
  Action& act(ActionKind kind, Reason reason = {});
  /// Likewise, of the lease.
  Action& act_on(const Lease& lease, ActionKind kind, Reason reason);
  /// What was made of these positions is not believed yet, and not refuted.
  [[nodiscard]] bool contested(Interval range) const noexcept;
  /// Workers declared different weights for some of these positions.
  [[nodiscard]] bool disputed(Interval range) const noexcept;
  /// One worker computes all of it, so that what it comes to can be compared with a claim.
  [[nodiscard]] bool compared(Interval range) const noexcept;
  /// Computed once, by this worker if one is given, and not believed.
  [[nodiscard]] bool doubted(Interval range, std::optional<WorkerId> by = {}) const noexcept;
  /// Splits the ranges where what is disputed or compared begins or ends, so that it is computed as it was.
  [[nodiscard]] std::vector<Interval> apart(std::vector<Interval> ranges) const;
  /// Has `worker` made something of these positions that is no good?
  [[nodiscard]] bool avoids(WorkerId worker, Interval range) const noexcept;
};

}  // namespace motley::modes
