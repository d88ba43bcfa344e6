#pragma once
// Workers who declare different weights for the same positions. Neither is believed: what was declared first is given
// up where none of it is summed yet, and somebody else computes the positions. A device of the head's own process
// settles it at once. Who is to blame is found when the pass is closed. One thread at a time.

#include <vector>

#include "modes/mode.h"
#include "modes/work/coverage.h"
#include "modes/work/lease_ends.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class Disputes {
 public:
  /// REQUIRES all outlive this.
  Disputes(PassWork& work, Host& host, LeaseEnds& ends) : work_(work), host_(host), ends_(ends) {}

  /// What the lease declares differs from what others did. True: it counts all the same, and may begin.
  bool believes(const Lease& lease, const Contribution& said, Time now);
  /// The pass is about to be closed; the workers whose word two others, or the head's own device, showed to be wrong.
  [[nodiscard]] std::vector<WorkerId> contradicted() const;
  /// A new pass begins.
  void clear() { claims_.clear(); }

 private:
  struct Claim {
    Interval range{};
    WorkerId worker = 0;  // 0: several, each a part
    bool local = false;
    double weight = 0;
  };

  /// False if it said so before.
  bool note(const Claim& claim);
  void note_parts(const Contribution& of, const Contribution& said, const std::vector<Contribution>& rivals);
  void give_up(const Contribution& rival, Time now);
  void add_counted(std::vector<Claim>& said, const Claim& about) const;
  [[nodiscard]] bool refuted(const Claim& claim) const;

  PassWork& work_;
  Host& host_;
  LeaseEnds& ends_;
  std::vector<Claim> claims_;
};

}  // namespace motley::modes
