#pragma once
// How leases of the open pass end, but for what follows for its mode. One thread at a time.

#include "modes/work/pass_work.h"

namespace motley::modes {

class LeaseEnds {
 public:
  /// REQUIRES it outlives this.
  explicit LeaseEnds(PassWork& work) : work_(work) {}

  /// Tells its worker that no more of it is needed. After Begin that is what counts of it: a Cancel would have no
  /// effect.
  void revoke(const Lease& lease, Reason reason);
  void end(Lease& lease);
  /// All of it is here and counts.
  void end_whole(Lease& lease, Time now);
  /// All of this session, whose positions others get.
  void take_back(SessionId session, Reason reason);
  /// Those whose positions others covered.
  void cancel_covered(Time now);
  /// Nothing more is needed of the pass.
  void end_open();
  /// Others computed its positions too; without this its worker would never be measured, and get as many again.
  void report_late(const Lease& lease, Time now);
  void report_all_late(Time now);

 private:
  PassWork& work_;
};

}  // namespace motley::modes
