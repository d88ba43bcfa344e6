#pragma once
// Steps exactly as one machine would make them: one pass is open at a time, its positions are cut over the members, and
// when all are covered the version moves on by one. Train step t is pass t; an evaluation by everybody comes between
// two steps. One thread at a time.

#include "modes/exact/balance.h"
#include "modes/exact/chunks.h"
#include "modes/exact/contributions.h"
#include "modes/exact/grants.h"
#include "modes/exact/verification.h"
#include "modes/mode.h"
#include "modes/run.h"
#include "modes/work/lease_ends.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class ExactMode final : public Mode {
 public:
  /// REQUIRES both outlive this.
  ExactMode(Run& run, Host& host)
      : run_(run),
        host_(host),
        work_(run),
        ends_(work_),
        chunks_(run, work_, ends_),
        verification_(work_),
        grants_(run, work_, host, verification_),
        balance_(run, work_, grants_),
        contributions_(work_, host, ends_, balance_, chunks_, verification_) {}

  bool open(Time now) override;
  /// Everybody evaluates the version of the day. REQUIRES closed().
  void open_evaluation(Time now);
  [[nodiscard]] bool closed() const noexcept override { return !work_.pass; }
  void take(const WorkEvent& event, Time now) override;
  void session_lost(SessionId session, Reason reason) override { ends_.take_back(session, reason); }
  [[nodiscard]] bool busy(SessionId session) const noexcept override { return work_.leases.has_live(session); }
  void watch(Time now) override;
  void settle(Time now) override;
  void shift(Duration gap, Time now) noexcept override;
  /// It takes part from now on: in what is open, too.
  void joined(const Member& member, Reason reason);
  /// The run is over.
  void end() { ends_.end_open(); }

  [[nodiscard]] const PassWork& work() const noexcept { return work_; }

 private:
  void open(PassId id, PassRange range, Time now);
  void on(const LeaseBegun& event, Time now) { contributions_.on(event, now); }
  void on(const ChunkArrived& event, Time now) { contributions_.on(event, now); }
  void on(const LeaseProgress& event, Time now);
  void on(const LeaseFinished& event, Time now) { contributions_.on(event, now); }
  void on(const LeaseFailed& event, Time) { contributions_.on(event); }
  void on(const PassFinished& event, Time now);
  void on(const DelegatedStep&, Time) {}
  void on(const DelegationEnded&, Time) {}
  void stop_if_idle();

  Run& run_;
  Host& host_;
  PassWork work_;
  LeaseEnds ends_;
  Chunks chunks_;
  Verification verification_;
  Grants grants_;
  Balance balance_;
  Contributions contributions_;
};

}  // namespace motley::modes
