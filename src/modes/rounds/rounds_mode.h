#pragma once
// Rounds of local steps: each worker makes the steps of a round by itself, on a slice of the round's positions, and
// sends how far that took its weights; the server makes one step of what they say (docs/design/0040-rounds.md). A
// position is free, held by a worker for a round, or done; what a worker sends is committed with all of its positions
// or not at all, and what was not done comes first in the next round. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "modes/exact/doubts.h"
#include "modes/exact/lease_ends.h"
#include "modes/exact/pass_work.h"
#include "modes/mode.h"
#include "modes/rounds/round_plan.h"
#include "modes/rounds/round_stock.h"
#include "modes/rounds/suspects.h"
#include "modes/run.h"

namespace motley::modes {

class RoundsMode final : public Mode {
 public:
  /// REQUIRES both outlive this.
  RoundsMode(Run& run, Host& host)
      : run_(run), host_(host), work_(run), ends_(work_), doubts_(work_), owed_(run.config.owed) {}

  bool open(Time now) override;
  [[nodiscard]] bool closed() const noexcept override { return !work_.pass; }
  void take(const WorkEvent& event, Time now) override;
  void session_lost(SessionId session, Reason reason) override {
    ends_.take_back(session, reason);
    withdraw(session, reason);
  }
  [[nodiscard]] bool busy(SessionId session) const noexcept override { return work_.leases.has_live(session); }
  void watch(Time) override {}
  void settle(Time now) override;
  void shift(Duration gap, Time now) noexcept override;
  /// It takes part from now on, which is in the next round.
  void joined(const fleet::Member& member, Reason reason);
  /// The run is over.
  void end() {
    recall();
    ends_.end_open();
  }

  [[nodiscard]] const PassWork& work() const noexcept { return work_; }
  /// What rounds so far left to the next, as soon as a round is settled.
  [[nodiscard]] RoundSpans owed() const;
  /// A lease of the round after the open one.
  [[nodiscard]] bool is_ahead(SessionId session, LeaseId lease) const noexcept;
  /// Something else comes before the next round, so that nobody begins it yet.
  void recall();

 private:
  /// The round after the open one. It is cut when the first has made its part of the open one, so that each can go on
  /// at once.
  struct Ahead {
    struct Slice {
      WorkerId worker = 0;
      Interval positions{};
      SessionId session = 0;
      LeaseId lease = 0;  // 0: it is not granted
    };
    OpenPass pass{};
    std::vector<Slice> slices{};
  };

  template <class Other>
  void on(const Other&, Time) {}
  void on(const LeaseBegun& event, Time now);
  void on(const ChunkArrived& event, Time now);
  void on(const LeaseProgress& event, Time now);
  void on(const LeaseFinished& event, Time now);
  void on(const LeaseFailed& event, Time now);
  void on(const ChunkReduced& event, Time now);
  void on(const ChunkApplied& event, Time now);
  void on(const PassFinished& event, Time now);

  [[nodiscard]] Lease* live_lease(SessionId session, LeaseId id);
  [[nodiscard]] std::vector<fleet::Member*> members(const OpenPass& of, Time now);
  /// Every local step of a slice has the same number of groups.
  [[nodiscard]] std::uint64_t unit(const OpenPass& of) const noexcept { return of.local_steps * run_.config.grain; }
  [[nodiscard]] StepRange in_order(const Owed& part) const;
  [[nodiscard]] Reach reach_of(const OpenPass& of, const fleet::Member& member) const;
  [[nodiscard]] bool has(const fleet::Member& member, Interval positions) const;
  /// It has too few samples for a slice of its own.
  [[nodiscard]] bool lacks(const OpenPass& of, const fleet::Member& member) const;
  /// The slices of those who have one, which are left.
  [[nodiscard]] std::vector<Interval> cut(const OpenPass& of, std::vector<fleet::Member*>& members);
  /// What is owed comes first in it, and is owed no more.
  [[nodiscard]] OpenPass round_at(std::uint64_t version);
  /// What it was granted in this round came to nothing.
  [[nodiscard]] bool in_vain(const fleet::Member* member) const;
  void call_parked(Time now);
  /// Who may be granted something: of those who came to nothing in this round nobody, unless nobody else is left.
  [[nodiscard]] std::vector<fleet::Member*> able(Time now);
  [[nodiscard]] bool somebody_is_free(Time now);
  /// Cuts all positions of the round over them.
  void share_out(Time now);
  /// What is free yet, of a round that nothing comes after: a lease for each at the most.
  void share_rest(std::span<const Interval> free, Time now);
  /// As much of it as one lease may have: so many positions.
  std::uint64_t grant(const fleet::Member& to, Interval wanted, bool first_of_pass, Time now);
  [[nodiscard]] Interval leasable(const OpenPass& of, Interval wanted) const noexcept;
  Lease& add_lease(LeaseId id, const fleet::Member& to, Interval slice, Time now);
  Action& say_grant(const OpenPass& of, const fleet::Member& to, LeaseId lease, Interval slice);
  /// The next round may begin before the open one is closed.
  [[nodiscard]] bool may_overlap() const;
  /// Its slice of the next round, now that its part of the open one is on its way.
  void go_on(const Lease& begun, Time now);
  void cut_ahead(Time now);
  /// The part of a session in the next round, if it was granted, is granted no more.
  void withdraw(SessionId session, Reason reason);
  void withdraw(Ahead::Slice& slice, Reason reason);
  /// The round that opens was cut before.
  void share_ahead(Ahead ahead, Time now);
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
  [[nodiscard]] bool any_live() const noexcept;

  Run& run_;
  Host& host_;
  PassWork work_;
  LeaseEnds ends_;
  Doubts doubts_;
  Suspects suspects_{};
  RoundSpans owed_;
  std::optional<Ahead> ahead_{};
  Time deadline_{};  // of the slices that are granted
  std::size_t committed_ = 0;
  std::uint32_t reduced_ = 0, applied_ = 0;
};

}  // namespace motley::modes
