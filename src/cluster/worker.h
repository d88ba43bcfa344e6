#pragma once
// The worker's side of a session as a pure state machine (docs/formats/session.md): which version of the weights to
// move to, when the other side must be taken for dead; which lease to compute when is WorkerTasks'. It sees leases and
// versions, never bytes. No thread, clock or socket: decide(event, now) -> actions, each with a reason. One thread at a
// time.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "cluster/worker_action.h"
#include "cluster/worker_event.h"
#include "cluster/worker_tasks.h"
#include "wire/messages.h"

namespace motley::cluster {

enum class WorkerState : std::uint8_t {
  connecting,  // no channel, or one on which nothing was said yet
  loading,     // the run is known: model and data are being made ready
  syncing,     // admitted; collects the weights
  member,      // holds a version whole; computes
  leaving,     // asked for nothing new
};
std::string_view to_word(WorkerState state) noexcept;

struct WorkerTimes {
  Duration heartbeat{};
  Duration silence{};  // nothing heard: the coordinator is taken for dead
};

/// Whether a session that ended with this Bye code is worth another try.
bool bye_means_again(std::string_view code) noexcept;

class WorkerMachine {
 public:
  static constexpr Duration kWokeGap = std::chrono::seconds(1);
  static constexpr Duration kRefreshWaitMax = std::chrono::seconds(60);

  explicit WorkerMachine(WorkerTimes times) : times_(times) {}

  /// Appends to `actions`. `now` never goes back.
  void decide(const WorkerEvent& event, Time now, WorkerActions& actions);

  [[nodiscard]] WorkerState state() const noexcept { return state_; }
  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] std::optional<std::uint64_t> version() const noexcept { return held_.version; }
  /// The lease being computed, if what comes out of task `number` is still wanted.
  [[nodiscard]] const wire::Grant* wanted(std::uint64_t number) const noexcept { return tasks_.wanted(number); }

 private:
  void on(const worker_event::Connected&);
  void on(const worker_event::Disconnected&);
  void on(const worker_event::Heard&);
  void on(const worker_event::SpecWhole&);
  void on(const worker_event::Prepared&);
  void on(const worker_event::PrepareFailed&);
  void on(const worker_event::DeviceOut&);
  void on(const worker_event::Admitted&);
  void on(const worker_event::VersionSeen&);
  void on(const worker_event::WeightsForgotten&);
  void on(const worker_event::VersionWhole&);
  void on(const worker_event::WeightsDiffer&);
  void on(const worker_event::TaskProgress&);
  void on(const worker_event::TaskLimited&);
  void on(const worker_event::TaskBegun&);
  void on(const worker_event::TaskFinished&);
  void on(const worker_event::TaskFailed&);
  void on(const worker_event::LeaveAsked&);
  void on(const worker_event::Malformed&);
  void on(const worker_event::Tick&);
  void on(const wire::PassOpened&);
  void on(const wire::PassClosed&);
  void on(const wire::Grant&);
  void on(const wire::Trim&);
  void on(const wire::Cancel&);
  void on(const wire::Bye&);

  WorkerAction& act(WorkerAction::Kind kind, WorkerReason reason) { return actions_->add(kind, reason); }
  /// REQUIRES the transition is in the table of worker.cpp.
  void enter(WorkerState next);
  void know_closed(std::uint64_t version);
  void move_on();
  void start_over(WorkerReason reason, std::uint64_t differs);
  void start_next();
  void end_session(bool reconnect, WorkerReason reason);
  void task_ended();

  WorkerTimes times_;
  WorkerActions* actions_ = nullptr;  // only inside decide()
  Time now_{};

  WorkerState state_ = WorkerState::connecting;
  bool open_ = false;
  bool leaving_ = false;          // asked by the user; outlives sessions
  bool stepping_aside_ = false;   // asked by the user, of this session
  bool prepare_pending_ = false;  // waits for the running task to end
  bool admitted_ = false;

  HeldWeights held_;
  std::optional<std::uint64_t> whole_;          // staged and complete
  std::optional<std::uint64_t> reported_pass_;  // last pass of step_done
  WorkerTasks tasks_;

  Time last_tick_{}, last_heard_{}, last_sent_{}, last_weights_{};
  Duration refresh_wait_{};
};

}  // namespace motley::cluster
