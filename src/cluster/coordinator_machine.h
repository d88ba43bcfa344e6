#pragma once
// The coordinator as a pure state machine: who computes which positions of which pass, what counts, when a chunk can be
// summed, when a step is closed, who is alive. No thread, clock, socket or file; decide() is a function of the state,
// the event and the time. Arithmetic and bytes are the driver's: it does what the actions say, in their order, and
// answers reduce, clip, apply and close_* with events of their own.
//
// One pass is open at a time: train step t, then perhaps an evaluation of version t + 1, then step t + 1. Another mode
// of training is another way to open and close passes: open_next() and on(PassFinished) are the place for it. One such
// is the stretch: while a worker of this process is the only member, it makes steps without asking, and no pass is
// open.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "fleet/roster.h"
#include "modes/action.h"
#include "modes/event.h"
#include "modes/exact/coverage.h"
#include "modes/exact/lease.h"
#include "modes/exact/pass.h"
#include "modes/holds.h"

namespace motley::cluster {

using fleet::Member, fleet::MemberState, fleet::SessionId, fleet::WorkerId, fleet::WorkerRecord;
using modes::Action, modes::ActionKind, modes::Actions, modes::Contribution, modes::Coverage, modes::Event,
    modes::Holds, modes::Interval, modes::IntervalSet, modes::Lease, modes::LeaseId, modes::LeaseState,
    modes::LeaseTable, modes::Marks, modes::PassId, modes::PassRange, modes::Reason, modes::ReasonCode,
    modes::whole_milliseconds;
using modes::Started, modes::Ticked, modes::StopAsked, modes::SessionOpened, modes::WorkerReady, modes::WorkerSynced,
    modes::RefreshWanted, modes::LeaseBegun, modes::ChunkArrived, modes::LeaseProgress, modes::LeaseFinished,
    modes::Calibrated, modes::LeaseFailed, modes::EvaluatedAside, modes::WorkerYields, modes::SessionEnded,
    modes::StretchStep, modes::StretchEnded, modes::Released, modes::ChunkReduced, modes::Clipped, modes::ChunkApplied,
    modes::PassFinished;

struct MachineConfig {
  std::uint32_t incarnation = 1;
  std::uint64_t first_version = 0;
  std::uint64_t steps = 0;   // the run ends at this version
  std::uint64_t epochs = 0;  // instead, where not 0: after so many
  std::uint64_t train_samples = 0;
  std::uint64_t test_samples = 0;  // 0: no evaluation
  std::uint64_t global_batch = 0;
  std::vector<BatchChange> batch_changes;  // that were made before
  std::uint64_t grain = 1;
  std::uint64_t evaluate_every = 0;  // 0: at the end of each epoch
  std::uint64_t min_workers = 1;
  std::size_t sessions_max = 256;
  std::uint32_t chunks = 0;
  std::uint32_t first_applied = 0;  // of them, where all are applied at once; the others follow in a circle
  std::uint64_t whole_until = 0;    // steps before this one need all chunks reduced before one is applied
  bool evaluates_aside = true;      // beside the training, where somebody is free; else the next step waits
  bool resumable = true;            // a run that is stopped may go on later
  Holds holds = Holds::never;       // else nobody evaluates aside
  bool hold_owed = false;           // where first_version is a mark: it was not released there before
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration silence = std::chrono::milliseconds(1800);
  Duration loading = std::chrono::seconds(300);
  Duration measure_again = std::chrono::seconds(5);  // a parked worker
  std::uint64_t solo_after = 0;                      // train passes before a stretch is lent; 0: never
};

/// What the driver knows of speeds. Must be a function of what it was told, so that a run can be replayed.
class Pace {
 public:
  virtual ~Pace() = default;
  /// Fills counts (as many as workers) so that they sum to `total`. `reissue`: of lost positions, not of a new pass.
  virtual void split(PassKind kind, std::uint64_t total, std::span<const WorkerId> workers, bool reissue,
                     std::span<std::uint64_t> counts) = 0;
  /// How long `worker` may take for `samples` before its lease is overdue.
  [[nodiscard]] virtual Duration allowance(PassKind kind, WorkerId worker, std::uint64_t samples) const = 0;
  /// Samples of the next calibration of `worker`; 0: enough is known of its speed.
  [[nodiscard]] virtual std::uint64_t calibration(WorkerId worker) const = 0;
  /// Samples by which a parked `worker` is measured again.
  [[nodiscard]] virtual std::uint64_t trial(WorkerId worker) const = 0;
  struct Verdict {
    bool pays = true;
    Duration with{}, without{};  // of a train pass of `total` samples, where it does not
    bool faster = false;         // its device or its link is faster than when it last had a share
  };
  /// A lease of a train pass under way.
  struct Part {
    WorkerId worker = 0;
    std::uint64_t limit = 0, ceiling = 0;             // samples promised, and how many it might be
    std::uint64_t first_samples = 0, samples = 0;     // done by its first and by its newest report; 0: none came yet
    Duration first_after{}, newest_after{}, after{};  // since the grant: when these came, and now
  };
  /// Whole micro-batches of `worker`, on the grain: what can be moved of its share. 0: nothing.
  [[nodiscard]] virtual std::uint64_t unit(WorkerId worker) const = 0;
  /// Samples that `late` should leave to `early`, so that the later of both is done sooner; 0: not worth it.
  [[nodiscard]] virtual std::uint64_t shift(const Part& late, const Part& early) const = 0;
  /// Likewise where the idle `helper` has a contribution more to make for it.
  [[nodiscard]] virtual std::uint64_t relief(const Part& late, WorkerId helper, Duration pass_age) const = 0;
  /// Whether a train pass ends sooner when `worker` joins `members`.
  [[nodiscard]] virtual Verdict judge(std::uint64_t total, std::span<const WorkerId> members, WorkerId worker) = 0;
  /// Whether the newest train passes were shorter than steps that `worker`, which had a share in them, made alone. What
  /// does not pay and has no times: it never was alone, and what it gains by the others is in doubt.
  [[nodiscard]] virtual Verdict compare(std::uint64_t total, WorkerId worker) = 0;
  /// Once `worker` was alone because of that doubt: whether the passes before were shorter.
  [[nodiscard]] virtual Verdict resolve(std::uint64_t total, WorkerId worker) const = 0;
};

class CoordinatorMachine {
 public:
  struct OpenPass {
    PassId id{};
    PassRange range{};
    Time opened{};
  };

  struct OpenStretch {
    SessionId session = 0;
    WorkerId worker = 0;
    LeaseId lease = 0;
    Interval steps{};  // lent
    Time since{};      // the step it is at began
    Time deadline{};   // of that step
    bool cut = false;
  };

  /// An evaluation by a parked worker, while the others train.
  struct Aside {
    SessionId session = 0;
    WorkerId worker = 0;
    LeaseId lease = 0;
    std::uint64_t version = 0, epoch = 0;
    Time deadline{};
  };

  /// REQUIRES pace outlives this; train_samples, global_batch, grain and chunks > 0.
  CoordinatorMachine(const MachineConfig& config, Pace& pace);

  /// Appends what is to be done. Time never goes back.
  void decide(const Event& event, Time now, Actions& actions);
  /// Takes effect with the next step. REQUIRES close_step was asked for and not answered yet.
  void change_batch(std::uint64_t batch, double rate);
  /// Any byte on any lane is life.
  void heard(SessionId session, Time now);

  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  [[nodiscard]] const std::optional<OpenPass>& pass() const noexcept { return pass_; }
  [[nodiscard]] const std::optional<OpenStretch>& stretch() const noexcept { return stretch_; }
  /// A step of the stretch was made whose result is not there yet: the next one begins. REQUIRES stretch().
  void made_unseen(Time now) { begin_lent_step(now); }
  [[nodiscard]] const std::optional<Aside>& aside() const noexcept { return aside_; }
  [[nodiscard]] const Coverage& coverage() const noexcept { return coverage_; }
  [[nodiscard]] const fleet::Roster& members() const noexcept { return members_; }
  [[nodiscard]] std::span<const Lease> leases() const noexcept { return leases_.all(); }
  [[nodiscard]] const Lease* lease(LeaseId id) const noexcept;
  [[nodiscard]] const BatchPlan& batches() const noexcept { return batches_; }
  /// The run ends at this version.
  [[nodiscard]] std::uint64_t steps() const noexcept {
    return config_.epochs > 0 ? batches_.first_step(config_.epochs) : config_.steps;
  }
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  /// Some chunks of the open step carry the next version already.
  [[nodiscard]] bool half_applied() const noexcept { return applied_ > 0; }
  /// Until Released.
  [[nodiscard]] bool held() const noexcept { return held_; }
  /// Members the next pass waits for; 0 if enough are here.
  [[nodiscard]] std::uint64_t members_wanted() const noexcept;

 private:
  struct Avoid {  // positions that this worker should not get again
    Interval range{};
    WorkerId worker = 0;
    bool poisoned = false;
  };

  // Sessions: coordinator_members.cpp
  void on(const Started&, Time now);
  void on(const Ticked&, Time now);
  void on(const StopAsked&, Time now);
  void on(const SessionOpened&, Time now);
  void on(const WorkerReady&, Time now);
  void on(const WorkerSynced&, Time now);
  void on(const RefreshWanted&, Time now);
  void on(const WorkerYields&, Time now);
  void on(const SessionEnded&, Time now);
  void on(const Calibrated&, Time now);
  void notice_gap(Time now);
  void watch_sessions(Time now);
  void close_session(SessionId session, Reason reason);
  void dismiss_if_idle(SessionId session);
  void strike(WorkerId worker);

  // Who takes part: coordinator_parking.cpp
  void consider(Member& member, Time now);
  void calibrate(Member& member, std::uint64_t samples);
  void take_in(Member& member, Reason reason);
  void park(Member& member, Reason reason, Time now);
  void park_idle(Time now);
  void park_others(Duration pass, Time now);
  void park_least(WorkerId alone, const Pace::Verdict& verdict, Time now);
  void rest(Member& member, const Pace::Verdict& verdict, Time now);
  void end_comparison(Time now);
  void take_in_parked();
  void try_link(Member& member, Time now);
  void link_answered(Member& member, Time now);
  [[nodiscard]] Pace::Verdict judge(const Member& member);

  // Evaluation beside the training: coordinator_aside.cpp
  void on(const EvaluatedAside&, Time now);
  void evaluate_aside(Time now);
  void watch_aside(Time now);
  void drop_aside(bool failed);

  // One worker alone: coordinator_solo.cpp
  void on(const StretchStep&, Time now);
  void on(const StretchEnded&, Time now);
  bool lend(Time now);
  void cut_if_due();
  void cut(Reason reason);
  void end_stretch();
  void watch_stretch(Time now);
  void begin_lent_step(Time now);
  [[nodiscard]] Member* soloist() noexcept;
  [[nodiscard]] std::uint64_t steps_to_boundary() const noexcept;

  // Between steps: coordinator_holds.cpp
  void on(const Released&, Time now);
  /// After a step: which holds come before the next one.
  void note_holds();
  /// True while the run is held, or is to be from now on.
  bool hold();
  [[nodiscard]] bool at_mark() const noexcept;

  // Contributions: coordinator_leases.cpp
  void on(const LeaseBegun&, Time now);
  void on(const ChunkArrived&, Time now);
  void on(const LeaseFinished&, Time now);
  void on(const LeaseFailed&, Time now);
  Lease* live_lease(SessionId session, LeaseId id);
  void take_chunk(Lease& lease, ChunkId chunk, Time now);
  void settle(Lease& lease, Time now);
  void poison(Lease& lease);
  void refuse(Lease& lease, Reason reason);
  /// Tells its worker that no more of it is needed. After Begin that is what counts of it: a Cancel would have no
  /// effect.
  void revoke(const Lease& lease, Reason reason);
  void end_lease(Lease& lease);
  void watch_leases(Time now);
  void cancel_covered(Time now);
  void reissue(Time now);
  void grant_parts(std::span<const Interval> parts, std::span<const Member* const> to, Reason reason, Time now);
  LeaseId grant(const Member& to, Interval range, Interval ceiling, bool first_of_pass, Reason reason, Time now);

  // Work that moves between leases under way: coordinator_balance.cpp
  void on(const LeaseProgress&, Time now);
  void grant_shares(Time now);
  [[nodiscard]] Interval meeting_zone(std::size_t low, std::size_t high) const;
  void balance(Time now);
  void move_boundary(Lease& low, Lease& high, Time now);
  void help(const Member& idle, Time now);
  void ask_back(Lease& lease, std::uint64_t samples, SessionId heir);
  void answered(Lease& lease, std::uint64_t limit, Time now);
  void send_trim(Lease& lease, Interval wanted, Reason reason);
  /// Positions that `lease` will not compute: to its heir, its partner, or whoever can.
  void hand_over(Lease& from, Interval freed, Reason reason, Time now);
  [[nodiscard]] bool takes_more(const Lease* lease, Interval by) const noexcept;
  [[nodiscard]] bool movable(const Lease& lease) const noexcept;
  [[nodiscard]] static Interval handed(const Lease& lease, std::uint64_t samples) noexcept;
  [[nodiscard]] static Pace::Part part_of(const Lease& lease, Time now) noexcept;

  // Passes: coordinator_passes.cpp
  void on(const ChunkReduced&, Time now);
  void on(const Clipped&, Time now);
  void on(const ChunkApplied&, Time now);
  void on(const PassFinished&, Time now);
  void open_next(Time now);
  void open(PassId id, PassRange range, Time now);
  void reduce_if_ready(ChunkId chunk);
  void report_late(const Lease& lease, Time now);
  void end_open_leases();
  void finish(Reason reason);
  void stop_if_idle();
  [[nodiscard]] ReasonCode end_reason() const noexcept;
  [[nodiscard]] bool evaluation_due() const noexcept;
  [[nodiscard]] bool training() const noexcept { return pass_ && pass_->id.kind == PassKind::train; }

  Action& act(ActionKind kind, Reason reason = {});

  MachineConfig config_;
  BatchPlan batches_;
  Pace& pace_;
  fleet::Roster members_;
  LeaseTable leases_;
  Coverage coverage_;
  std::optional<OpenPass> pass_;
  std::optional<OpenStretch> stretch_;  // REQUIRES no pass
  std::optional<Aside> aside_;
  std::vector<Avoid> avoid_;
  Actions* actions_ = nullptr;  // of the running decide()
  std::uint64_t version_ = 0;
  std::uint64_t train_passes_ = 0;  // closed here, as far as a stretch waits for them
  std::uint32_t reduced_ = 0, applied_ = 0;
  bool opened_any_ = false;
  bool evaluation_pending_ = false;
  bool step_hold_due_ = false, mark_hold_due_ = false, held_ = false;
  bool reissue_wanted_ = false;
  bool balance_wanted_ = false;
  Reason reissue_reason_;
  bool started_ = false, stopping_ = false, final_ = false, finished_ = false;
  std::optional<Time> last_tick_;
  // Kept between calls for their memory.
  std::vector<WorkerId> split_workers_;
  std::vector<std::uint64_t> split_counts_;
  std::vector<Member*> split_members_;
  std::vector<Interval> split_ranges_;
};

}  // namespace motley::cluster
