#pragma once
// Which positions of the open pass are promised to whom: shares when it opens, and later what nobody has promised any
// more. One thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "modes/exact/verification.h"
#include "modes/mode.h"
#include "modes/run.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

class Grants {
 public:
  /// REQUIRES all outlive this.
  Grants(Run& run, PassWork& work, Host& host, Verification& verification)
      : run_(run), work_(work), host_(host), verification_(verification) {}

  /// Of the pass that opens.
  void share_out(Time now);
  /// Of positions without a promise: to whoever is able, or later.
  void reissue(Time now);
  LeaseId grant(const Member& to, Interval range, Interval ceiling, bool first_of_pass, Reason reason, Time now,
                bool withheld = false);

 private:
  void grant_shares(Time now);
  /// Where the boundary between two shares may lie: everywhere but in the first micro-batch of either. Empty: it stays.
  [[nodiscard]] Interval meeting_zone(std::size_t low, std::size_t high) const;
  [[nodiscard]] std::vector<const Member*> able(Time now) const;
  /// Samples of the open pass are not there.
  /// All of it to one worker, and nothing of it goes to others.
  void grant_compared(Interval part, std::span<const Member* const> to, Reason reason, Time now);
  void grant_parts(std::span<const Interval> parts, std::span<const Member* const> to, Reason reason, Time now);

  Run& run_;
  PassWork& work_;
  Host& host_;
  Verification& verification_;
  // Kept between calls for their memory.
  std::vector<WorkerId> workers_;
  std::vector<std::uint64_t> counts_;
  std::vector<Member*> members_;
  std::vector<Interval> ranges_;
};

}  // namespace motley::modes
