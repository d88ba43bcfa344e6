#pragma once
// What comes back of leases: begun, delivered, refused, poisoned, complete. One thread at a time.

#include "modes/event.h"
#include "modes/exact/balance.h"
#include "modes/exact/chunks.h"
#include "modes/exact/disputes.h"
#include "modes/exact/verification.h"
#include "modes/mode.h"
#include "modes/work/doubts.h"
#include "modes/work/lease_ends.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class Contributions {
 public:
  /// REQUIRES all outlive this.
  Contributions(PassWork& work, Host& host, LeaseEnds& ends, Balance& balance, Chunks& chunks,
                Verification& verification)
      : work_(work),
        host_(host),
        ends_(ends),
        balance_(balance),
        chunks_(chunks),
        verification_(verification),
        doubts_(work),
        disputes_(work, host, ends) {}

  void on(const LeaseBegun& event, Time now);
  void on(const ChunkArrived& event, Time now);
  void on(const LeaseFinished& event, Time now);
  void on(const LeaseFailed& event);
  void watch(Time now);
  /// A new pass begins.
  void begin() { disputes_.clear(); }
  /// The train pass is done.
  void learn() { doubts_.learn(); }
  /// At the end of a pass: as Disputes::contradicted().
  [[nodiscard]] std::vector<WorkerId> contradicted() const { return disputes_.contradicted(); }
  [[nodiscard]] Lease* live_lease(SessionId session, LeaseId id);

 private:
  /// Whether what it declares may count. Else it is refused.
  [[nodiscard]] bool counts(Lease& lease, const Contribution& said, Time now);
  void take_buffered(Lease& lease);
  void take_chunk(Lease& lease, ChunkId chunk);
  /// What counted of it counts no more, as far as it is not summed.
  void withhold(Lease& lease);
  /// All of a chunk that may be summed is here: who is to be looked at first, by what it says, is withheld.
  void look(ChunkId chunk);
  /// Withheld, and all of it is there.
  void conclude(Lease& lease);
  /// Where all of it is there.
  void settle(Lease& lease, Time now);
  void poison(Lease& lease);
  /// No other worker comes near what it said of these positions.
  void doubt(Lease& lease);
  /// Enough others found these positions not finite, too.
  [[nodiscard]] bool confirmed(const Lease& lease) const;
  void refuse(Lease& lease, Reason reason);
  void handed_back(Lease& lease);
  [[nodiscard]] bool is_unheard(const Lease& lease, Time now) const;

  PassWork& work_;
  Host& host_;
  LeaseEnds& ends_;
  Balance& balance_;
  Chunks& chunks_;
  Verification& verification_;
  Doubts doubts_;
  Disputes disputes_;
};

}  // namespace motley::modes
