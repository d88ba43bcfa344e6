#pragma once
// The coordinator as a pure state machine: it puts the rooms of a run together. Who is here is fleet's, how steps are
// made is a mode's; what remains is whose event it is, and which work is opened next: a step, an evaluation, a pause,
// or the end. No thread, clock, socket or file; decide() is a function of the state, the event and the time. Arithmetic
// and bytes are the driver's: it does what the actions say, in their order, and answers reduce, clip, apply and close_*
// with events of their own.

#include <cstdint>
#include <optional>
#include <span>

#include "base/time.h"
#include "cluster/attendance.h"
#include "cluster/rooms.h"
#include "cluster/sessions.h"
#include "fleet/parking.h"
#include "modes/event.h"

namespace motley::cluster {

enum class RunState : std::uint8_t { waiting, running, finished };

class CoordinatorMachine final : private modes::Host {
 public:
  /// REQUIRES performance outlives this; train_samples, global_batch, grain and chunks > 0.
  CoordinatorMachine(const modes::RunConfig& config, modes::PerformanceModel& performance);

  /// Appends what is to be done. Time never goes back.
  void decide(const modes::Event& event, Time now, modes::Actions& actions);
  /// Steps to come have these batches. REQUIRES paused(), in order, behind all changes before.
  void cut_steps(std::span<const BatchChange> changes);
  /// Any byte on any lane is life.
  void heard(fleet::SessionId session, Time now);

  [[nodiscard]] bool has_room(Time now) const { return sessions_.has_room(now); }
  [[nodiscard]] std::uint64_t version() const noexcept { return rooms_.run.version; }
  [[nodiscard]] const std::optional<modes::OpenPass>& pass() const noexcept { return work().pass; }
  [[nodiscard]] const std::optional<modes::Delegation>& delegation() const noexcept {
    return rooms_.local.delegation();
  }
  /// A step of the delegation was made whose result is not there yet: the next one begins. REQUIRES delegation().
  void made_unseen(Time now) { rooms_.local.made_unseen(now); }
  [[nodiscard]] const std::optional<modes::BackgroundEvaluation>& background() const noexcept {
    return rooms_.evaluation.background();
  }
  [[nodiscard]] const modes::Coverage& coverage() const noexcept { return work().coverage; }
  [[nodiscard]] const fleet::Roster& members() const noexcept { return rooms_.run.roster; }
  [[nodiscard]] std::span<const modes::Lease> leases() const noexcept { return work().leases.all(); }
  [[nodiscard]] const modes::Lease* lease(modes::LeaseId id) const noexcept { return work().leases.find(id); }
  [[nodiscard]] std::span<const modes::PassWork::Claim> claims() const noexcept { return work().claims; }
  /// Positions of rounds that are made, which come first in the next one.
  [[nodiscard]] std::vector<Owed> owed() const { return rooms_.rounds.owed(); }
  [[nodiscard]] bool is_overlapped(fleet::SessionId session, modes::LeaseId lease) const noexcept {
    return rooms_.rounds.is_overlapped(session, lease);
  }
  [[nodiscard]] const BatchPlan& batches() const noexcept { return rooms_.run.batches; }
  /// The run ends at this version.
  [[nodiscard]] std::uint64_t steps() const noexcept { return rooms_.run.steps(); }
  [[nodiscard]] bool finished() const noexcept { return rooms_.run.finished; }
  [[nodiscard]] bool stopping() const noexcept { return rooms_.run.stopping; }
  /// Until Resumed.
  [[nodiscard]] bool paused() const noexcept { return rooms_.pause.paused(); }
  /// Members the next pass waits for; 0 if enough are here.
  [[nodiscard]] std::uint64_t members_wanted() const noexcept;

 private:
  void on(const modes::Started& event, Time now);
  void on(const modes::Ticked& event, Time now);
  void on(const modes::StopAsked& event, Time now);
  void on(const modes::SessionOpened& event, Time now);
  void on(const modes::Resumed& event, Time now);
  void on(const modes::WorkerReady& event, Time) { sessions_.on(event); }
  void on(const modes::WorkerSynced& event, Time now) { sessions_.on(event, now); }
  void on(const modes::RefreshWanted& event, Time) { sessions_.on(event); }
  void on(const modes::WorkerYields& event, Time) { sessions_.on(event); }
  void on(const modes::SessionEnded& event, Time) { sessions_.on(event); }
  void on(const modes::Calibrated& event, Time now) { sessions_.on(event, now); }
  void on(const modes::Probed& event, Time) { sessions_.on(event); }
  void on(const modes::ProbesCompared& event, Time) { sessions_.on(event); }
  void on(const modes::BackgroundEvaluated& event, Time) { rooms_.evaluation.on(event); }
  void on(const modes::BackgroundCompared& event, Time) { rooms_.evaluation.on(event); }
  /// Of the mode it is for; the others know nothing of it.
  void on(const modes::DelegatedStep& event, Time now) { rooms_.local.take(event, now); }
  void on(const modes::DelegationEnded& event, Time now) { rooms_.local.take(event, now); }
  template <class OfLeases>
  void on(const OfLeases& event, Time now) {
    if (rooms_.rounds.closed()) return rooms_.exact.take(event, now);
    rooms_.rounds.take(event, now);
  }

  // For the modes.
  void strike(fleet::WorkerId worker) override { sessions_.strike(worker); }
  void refute(fleet::WorkerId worker) override { sessions_.refute(worker); }
  void idle(fleet::SessionId session) override { sessions_.dismiss_if_idle(session); }
  void all_idle() override { sessions_.dismiss_idle(); }
  void take_in_parked() override { parking_.take_in_parked(); }
  void take_in_again(fleet::Member& member) override;
  void version_made(bool shared, Duration took, Time now) override;
  void evaluated() override { rooms_.evaluation.done(); }
  [[nodiscard]] bool evaluation_waits() const noexcept override { return rooms_.evaluation.pending(); }
  void delegation_ended(Time now) override;
  void finish(modes::Reason reason) override;

  /// Of the pass that is open.
  [[nodiscard]] const modes::PassWork& work() const noexcept {
    return rooms_.rounds.closed() ? rooms_.exact.work() : rooms_.rounds.work();
  }
  void open_next(Time now);
  /// True while the run is paused, or is to be from now on.
  bool pause();
  [[nodiscard]] modes::ReasonCode end_reason() const noexcept;

  Rooms rooms_;
  Attendance attendance_;
  fleet::Parking parking_;
  Sessions sessions_;
  RunState state_ = RunState::waiting;
  bool final_ = false;  // it is not to be resumed
};

}  // namespace motley::cluster
