#pragma once
// The worker's side of a session as a pure state machine (docs/formats/session.md): which lease to compute when, which
// version of the weights to move to, when the other side must be taken for dead. It sees leases and versions, never
// bytes. No thread, clock or socket: decide(event, now) -> actions, each with a reason. One thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"
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

namespace worker_event {
struct Connected {};
struct Disconnected {};
struct Heard {  // a frame of this session, before its content is looked at
  bool weights = false;
};
struct SpecWhole {};  // RunSpec and the model file are there
struct Prepared {};
struct PrepareFailed {};
struct Admitted {};
struct VersionSeen {  // the first segment of a version
  std::uint64_t version = 0;
};
struct WeightsForgotten {};  // what came before admission was of another session
struct VersionWhole {
  std::uint64_t version = 0;
};
struct WeightsDiffer {  // what a version came to is not what the coordinator holds
  std::uint64_t version = 0;
};
struct TaskProgress {
  std::uint64_t number = 0, done = 0;
};
struct TaskLimited {  // what became of limit_task
  std::uint64_t number = 0, count = 0;
};
struct TaskBegun {
  std::uint64_t number = 0, count = 0;
};
struct TaskFinished {
  std::uint64_t number = 0, count = 0;
};
struct TaskFailed {
  std::uint64_t number = 0;
};
struct LeaveAsked {
  bool for_good = true;  // else the session alone ends
};
struct Malformed {};  // bytes that make no sense
struct Tick {};
}  // namespace worker_event

using WorkerEvent =
    std::variant<worker_event::Connected, worker_event::Disconnected, worker_event::Heard, worker_event::SpecWhole,
                 worker_event::Prepared, worker_event::PrepareFailed, worker_event::Admitted, worker_event::VersionSeen,
                 worker_event::WeightsForgotten, worker_event::VersionWhole, worker_event::WeightsDiffer,
                 worker_event::TaskProgress, worker_event::TaskLimited, worker_event::TaskBegun,
                 worker_event::TaskFinished, worker_event::TaskFailed, worker_event::LeaveAsked,
                 worker_event::Malformed, worker_event::Tick, wire::PassOpened, wire::PassClosed, wire::Grant,
                 wire::Trim, wire::Cancel, wire::Bye>;

enum class WorkerReason : std::uint8_t {
  none,
  spec_arrived,       // run and model are known
  model_ready,        // model and data match
  version_complete,   // all chunks of a version are there
  pass_closed,        // the pass was closed
  versions_missed,    // chunks of a closed version did not come
  weights_differ,     // they are not what the coordinator holds
  lease_granted,      // a lease at the version held or on its way, and nothing runs
  lease_trimmed,      // the coordinator moved the end of the lease
  lease_cancelled,    // the coordinator took the lease back
  lease_stale,        // the lease is of a version gone by
  micro_batch_done,   // computation went on
  task_done,          // computation ended
  task_failed,        // computation failed
  channel_lost,       // the channel closed
  silence,            // nothing heard for too long
  said_bye,           // the coordinator ended the session
  malformed,          // bytes that make no sense
  prepare_failed,     // model or data cannot be used here
  leave_asked,        // the user wants to leave
  time_to_heartbeat,  // regular
  too_many_leases,    // the queue of leases is full
};

struct WorkerAction {
  enum class Kind : std::uint8_t {
    prepare,  // build the model, open the data
    send_ready,
    send_synced,     // version
    send_refresh,    // version: at which they differ, or 0
    send_heartbeat,  // number: the lease that is computed, or 0
    send_progress,   // lease, count; limit and trim in answers to a Trim
    send_begin,      // lease, count
    send_finish,     // lease, count; 0: nothing was done
    send_failed,     // lease
    send_yield,
    send_bye,        // leave, or prepare failed, by reason
    adopt,           // version: what tasks compute with from now on
    forget_weights,  // all of them, whole or not
    start_task,      // lease, number
    limit_task,      // number, count
    finish_early,    // number: no further micro-batch; nothing done yet: gives the lease back
    step_done,       // version, count: samples of ours in it
    disconnect,      // reconnect
  };
  Kind kind = Kind::prepare;
  WorkerReason reason = WorkerReason::none;
  bool reconnect = false;
  std::uint64_t version = 0;
  std::uint64_t number = 0;
  std::uint64_t count = 0;
  std::uint64_t limit = 0, trim = 0;
  wire::Grant lease;
};
/// One sentence: what is done and why.
std::string to_sentence(const WorkerAction& action);

/// Fixed capacity: deciding never allocates.
class WorkerActions {
 public:
  static constexpr std::size_t kMax = 96;
  WorkerAction& add(WorkerAction::Kind kind, WorkerReason reason);
  void clear() noexcept { size_ = 0; }
  [[nodiscard]] const WorkerAction* begin() const noexcept { return actions_.data(); }
  [[nodiscard]] const WorkerAction* end() const noexcept { return actions_.data() + size_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::array<WorkerAction, kMax> actions_{};
  std::size_t size_ = 0;
};

/// Whether a session that ended with this Bye code is worth another try.
bool bye_means_again(std::string_view code) noexcept;

class WorkerMachine {
 public:
  static constexpr std::size_t kLeasesMax = 64;  // queued at once
  static constexpr std::size_t kRecentMax = 64;  // leases remembered, to tell a repeated Grant
  static constexpr Duration kWokeGap = std::chrono::seconds(1);
  static constexpr Duration kRefreshWaitMax = std::chrono::seconds(60);

  explicit WorkerMachine(WorkerTimes times) : times_(times) {}

  /// Appends to `actions`. `now` never goes back.
  void decide(const WorkerEvent& event, Time now, WorkerActions& actions);

  [[nodiscard]] WorkerState state() const noexcept { return state_; }
  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] std::optional<std::uint64_t> version() const noexcept { return version_; }
  /// The lease being computed, if what comes out of task `number` is still wanted.
  [[nodiscard]] const wire::Grant* wanted(std::uint64_t number) const noexcept;

 private:
  struct Queued {
    wire::Grant lease;
    std::uint64_t trim = 0;  // number of the newest Trim
  };
  struct Running {
    std::uint64_t number = 0;
    wire::Grant lease;
    std::uint64_t trim = 0;
    std::uint64_t done = 0;
    std::uint64_t limits_open = 0;  // limit_task that are not answered
    bool begun = false;
    bool mute = false;    // nothing of it may be sent
    bool answer = false;  // although mute, the coordinator waits for its Finish
  };

  void on(const worker_event::Connected&);
  void on(const worker_event::Disconnected&);
  void on(const worker_event::Heard&);
  void on(const worker_event::SpecWhole&);
  void on(const worker_event::Prepared&);
  void on(const worker_event::PrepareFailed&);
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
  void know_closed(std::uint64_t version);
  void move_on();
  void start_over(WorkerReason reason, std::uint64_t differs);
  [[nodiscard]] bool can_start(const wire::Grant& lease) const;
  std::deque<Queued>::iterator queued_lease(std::uint64_t lease);
  void start_next();
  void end_session(bool reconnect, WorkerReason reason);
  void task_ended();
  void abandon_task(WorkerReason reason, bool answer);
  void finish_empty(const wire::Grant& lease, WorkerReason reason);
  bool remember(const wire::Grant& grant);

  WorkerTimes times_;
  WorkerActions* actions_ = nullptr;  // only inside decide()
  Time now_{};

  WorkerState state_ = WorkerState::connecting;
  bool open_ = false;
  bool leaving_ = false;          // asked by the user; outlives sessions
  bool stepping_aside_ = false;   // asked by the user, of this session
  bool prepare_pending_ = false;  // waits for the running task to end
  bool admitted_ = false;
  bool confirmed_ = false;  // the coordinator treats us as a member: it sent us a pass or a lease

  std::optional<std::uint64_t> version_;        // tasks compute with
  std::optional<std::uint64_t> whole_;          // staged and complete
  std::uint64_t closed_ = 0;                    // newest version known to be closed
  std::optional<std::uint64_t> reported_pass_;  // last pass of step_done
  std::deque<Queued> queue_;
  std::array<std::uint64_t, kRecentMax> recent_{};
  std::size_t recent_used_ = 0;
  std::optional<Running> running_;
  std::uint64_t task_numbers_ = 0;
  std::uint64_t samples_mine_ = 0;

  Time last_tick_{}, last_heard_{}, last_sent_{}, last_weights_{};
  Duration refresh_wait_{};
};

}  // namespace motley::cluster
