#pragma once
// Work that moves between leases under way, before it is done: what the shares got wrong costs no contribution more.
// One thread at a time.

#include "modes/event.h"
#include "modes/exact/grants.h"
#include "modes/run.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class Balance {
 public:
  /// REQUIRES all outlive this.
  Balance(Run& run, PassWork& work, Grants& grants) : run_(run), work_(work), grants_(grants) {}

  /// Of a live lease.
  void progress(Lease& lease, const LeaseProgress& event, Time now);
  void balance(Time now);
  /// Positions that `from` will not compute: to its heir, its partner, or whoever can.
  void hand_over(Lease& from, Interval freed, Reason reason, Time now);

 private:
  void move_boundary(Lease& low, Lease& high, Time now);
  void help(const Member& idle, Time now);
  void ask_back(Lease& lease, std::uint64_t samples, SessionId heir);
  void answered(Lease& lease, std::uint64_t limit, Time now);
  void send_trim(Lease& lease, Interval wanted, Reason reason);
  /// Whether the lease can be extended by these positions.
  [[nodiscard]] bool takes_more(const Lease* lease, Interval by) const noexcept;

  Run& run_;
  PassWork& work_;
  Grants& grants_;
};

}  // namespace motley::modes
