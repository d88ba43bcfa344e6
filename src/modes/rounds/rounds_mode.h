#pragma once
// Rounds of local steps: each worker makes the steps of a round by itself, on a slice of the round's positions, and
// sends how far that took its weights; the server makes one step of what they say (docs/design/0040-rounds.md). A
// position is free, held by a worker for a round, or done; what a worker sends is committed with all of its positions
// or not at all, and what was not done comes first in the next round. One thread at a time.

#include <cstdint>
#include <span>

#include "modes/mode.h"
#include "modes/rounds/overlapped_round.h"
#include "modes/rounds/round_grants.h"
#include "modes/rounds/round_plan.h"
#include "modes/rounds/round_slices.h"
#include "modes/rounds/round_source.h"
#include "modes/rounds/suspects.h"
#include "modes/run.h"
#include "modes/work/doubts.h"
#include "modes/work/lease_ends.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class RoundsMode final : public Mode {
 public:
  /// REQUIRES both outlive this.
  RoundsMode(Run& run, Host& host)
      : run_(run),
        host_(host),
        work_(run),
        ends_(work_),
        doubts_(work_),
        source_(run),
        slices_(run, suspects_),
        overlapped_(run, work_, slices_, source_),
        grants_(run, work_, host, slices_) {}

  bool open(Time now) override;
  [[nodiscard]] bool closed() const noexcept override { return !work_.pass; }
  void take(const WorkEvent& event, Time now) override;
  void session_lost(SessionId session, Reason reason) override {
    ends_.take_back(session, reason);
    overlapped_.withdraw(session, reason);
  }
  [[nodiscard]] bool busy(SessionId session) const noexcept override { return work_.leases.has_live(session); }
  void watch(Time) override {}
  void settle(Time now) override;
  void shift(Duration gap, Time now) noexcept override;
  /// It takes part from now on, which is in the next round.
  void joined(const fleet::Member& member, Reason reason);
  /// The run is over.
  void end() {
    overlapped_.recall();
    ends_.end_open();
  }

  [[nodiscard]] const PassWork& work() const noexcept { return work_; }
  /// What rounds so far left to the next, as soon as a round is settled.
  [[nodiscard]] RoundSpans owed() const { return overlapped_.owed(); }
  /// A lease of the round after the open one.
  [[nodiscard]] bool is_overlapped(SessionId session, LeaseId lease) const noexcept {
    return overlapped_.has(session, lease);
  }
  /// Something else comes before the next round, so that nobody begins it yet.
  void recall() { overlapped_.recall(); }

 private:
  template <class Other>
  void on(const Other&, Time) {}
  void on(const LeaseBegun& event, Time now);
  void on(const ChunkArrived& event, Time now);
  void on(const LeaseProgress& event, Time now);
  void on(const LeaseFinished& event, Time now);
  void on(const LeaseFailed& event, Time now);
  void on(const PassFinished& event, Time now);

  [[nodiscard]] Lease* live_lease(SessionId session, LeaseId id);
  /// Where all of the contribution is there.
  void commit_if_whole(Lease& lease, Time now);
  void poison(Lease& lease);
  /// Enough workers came to something that is not finite for some of these positions.
  [[nodiscard]] bool hopeless(std::span<const Owed> parts) const;
  /// It is not to count, as nobody comes near.
  bool doubts(const Lease& lease);
  void refuse(Lease& lease, Reason reason);
  void handed_back(Lease& lease);
  void stop(bool last, std::span<const Interval> missing);
  void end_late(Time now);
  void close_round(std::span<const Interval> free);
  void finish_chunks();
  void go_on(Time now);
  [[nodiscard]] bool any_live() const noexcept;

  Run& run_;
  Host& host_;
  PassWork work_;
  LeaseEnds ends_;
  Doubts doubts_;
  Suspects suspects_{};
  RoundSource source_;
  RoundSlices slices_;
  OverlappedRound overlapped_;
  RoundGrants grants_;
  std::size_t committed_ = 0;
};

}  // namespace motley::modes
