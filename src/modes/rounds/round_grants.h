#pragma once
// Who has which positions of the open round: a slice each when it opens, and later what is free of a round that nothing
// comes after. One thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "modes/mode.h"
#include "modes/rounds/overlapped_round.h"
#include "modes/rounds/round_slices.h"
#include "modes/run.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class RoundGrants {
 public:
  /// REQUIRES all outlive this.
  RoundGrants(Run& run, PassWork& work, Host& host, RoundSlices& slices)
      : run_(run), work_(work), host_(host), slices_(slices) {}

  /// Cuts all positions of the round over those who are able.
  void share_out(Time now);
  /// The round that opens was cut before.
  void share_cut(CutRound cut, Time now);
  /// What is free yet: a lease for each at the most.
  void share_rest(std::span<const Interval> free, Time now);
  void call_parked(Time now);
  [[nodiscard]] bool somebody_is_free(Time now);
  /// Of what was granted last.
  [[nodiscard]] Time deadline() const noexcept { return deadline_; }
  void shift(Duration gap) noexcept { deadline_ += gap; }

 private:
  /// What it was granted in this round came to nothing.
  [[nodiscard]] bool in_vain(const fleet::Member* member) const;
  /// Who may be granted something: of those who came to nothing in this round nobody, unless nobody else is left.
  [[nodiscard]] std::vector<fleet::Member*> able(Time now);
  /// As much of it as one lease may have: so many positions.
  std::uint64_t grant(const fleet::Member& to, Interval wanted, bool first_of_pass, Time now);
  Lease& add_lease(LeaseId id, const fleet::Member& to, Interval slice, Time now);

  Run& run_;
  PassWork& work_;
  Host& host_;
  RoundSlices& slices_;
  Time deadline_{};
};

}  // namespace motley::modes
