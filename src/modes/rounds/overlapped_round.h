#pragma once
// The round after the open one, which workers begin while what they made of the open one is on its way
// (docs/design/0040-rounds.md). It is cut when the first has made its part of the open one. One thread at
// a time.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "modes/rounds/round_slices.h"
#include "modes/rounds/round_source.h"
#include "modes/run.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

/// A round that is cut and not open yet.
struct CutRound {
  struct Slice {
    WorkerId worker = 0;
    Interval positions{};
    SessionId session = 0;
    LeaseId lease = 0;  // 0: it is not granted
  };
  OpenPass pass{};
  std::vector<Slice> slices{};
};

class OverlappedRound {
 public:
  /// REQUIRES all outlive this.
  OverlappedRound(Run& run, const PassWork& work, RoundSlices& slices, RoundSource& source)
      : run_(run), work_(work), slices_(slices), source_(source) {}

  /// Its slice of the next round for whoever began to send its part of the open one, if it may go on.
  void go_on(const Lease& begun, Time now);
  /// A lease of this round.
  [[nodiscard]] bool has(SessionId session, LeaseId lease) const noexcept;
  /// The part of a session in it, if it was granted, is granted no more.
  void withdraw(SessionId session, Reason reason);
  /// Something else comes before the next round, so that nobody begins it yet: what it would have had of what is owed
  /// is owed again.
  void recall();
  /// It opens, if it was cut.
  [[nodiscard]] std::optional<CutRound> take() { return std::exchange(cut_, std::nullopt); }
  /// What is owed, as if it had not been cut.
  [[nodiscard]] RoundSpans owed() const;

 private:
  /// The next round may begin before the open one is closed.
  [[nodiscard]] bool may_overlap() const;
  void cut(Time now);
  void withdraw(CutRound::Slice& slice, Reason reason);

  Run& run_;
  const PassWork& work_;
  RoundSlices& slices_;
  RoundSource& source_;
  std::optional<CutRound> cut_{};
};

}  // namespace motley::modes
