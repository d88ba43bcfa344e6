#pragma once
// Exact steps of the head's own devices, with help from machines behind slow links (docs/design/0052-helpers.md). When
// step t opens, a helper is granted a slice at the end of step t + 1, which it computes at version t. What is there of
// it when the others have made their part of step t + 1 counts in that; else they make these positions themselves. So
// nobody ever waits for a helper, and each step has the samples that it has without them. One thread at a time.

#include <cstdint>
#include <map>
#include <vector>

#include "modes/exact/exact_mode.h"
#include "modes/helper/helper_size.h"
#include "modes/mode.h"
#include "modes/run.h"

namespace motley::modes {

class HelperMode final : public Mode {
 public:
  /// REQUIRES all outlive this.
  HelperMode(Run& run, Host& host, ExactMode& exact) : run_(run), host_(host), exact_(exact) {}

  bool open(Time now) override;
  [[nodiscard]] bool closed() const noexcept override { return exact_.closed(); }
  void take(const WorkEvent& event, Time now) override;
  void session_lost(SessionId session, Reason reason) override;
  [[nodiscard]] bool busy(SessionId session) const noexcept override;
  void watch(Time) override {}
  void settle(Time now) override;
  void shift(Duration, Time) noexcept override {}
  /// The run is over.
  void end();

  /// Leases of the step after the one that is open, or opens next, in order of their numbers.
  [[nodiscard]] const std::vector<Lease>& early() const noexcept { return early_; }
  [[nodiscard]] const Lease* find(LeaseId lease) const noexcept;
  /// Whose positions they are.
  [[nodiscard]] PassId early_pass() const noexcept {
    return {.kind = PassKind::train, .number = run_.version + (exact_.work().training() ? 1 : 0)};
  }

 private:
  template <class Other>
  void on(const Other&, Time) {}
  void on(const LeaseBegun& event, Time now);
  void on(const ChunkArrived& event, Time now);
  void on(const LeaseFinished& event, Time now);
  void on(const LeaseFailed& event, Time now);

  [[nodiscard]] Lease* live_lease(SessionId session, LeaseId id);
  /// Another machine may be asked for positions of the step after the one that opens now.
  [[nodiscard]] bool may_help(const Member& member, Time now) const;
  /// What of the leases of the pass was in time, each once.
  void credit();
  void rest_in_vain(Time now);
  void grant_ahead(Time now);
  void grant(const Member& to, Interval slice, Time now);
  /// Its positions are shared as all others are.
  void drop(LeaseId lease, Reason reason);
  Action& act_on(const Lease& lease, ActionKind kind, Reason reason);

  Run& run_;
  Host& host_;
  ExactMode& exact_;
  std::vector<Lease> early_;
  std::vector<LeaseId> credited_;  // of the pass
  std::map<WorkerId, HelperSize> sizes_;
};

}  // namespace motley::modes
