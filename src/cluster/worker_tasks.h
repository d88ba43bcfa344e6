#pragma once
// The leases of a worker: those that wait, and the one that is computed. Of a session, but for the task, which may
// outlive it until it notices that it is to stop. One thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "cluster/worker_action.h"
#include "cluster/worker_event.h"
#include "wire/messages.h"

namespace motley::cluster {

/// Which weights are here, as far as it decides what may start.
struct HeldWeights {
  std::optional<std::uint64_t> version;  // tasks compute with
  std::uint64_t closed = 0;              // newest version known to be closed
  bool confirmed = false;                // the coordinator treats us as a member: it sent us a pass or a lease
};

class WorkerTasks {
 public:
  static constexpr std::size_t kLeasesMax = 64;  // queued at once
  static constexpr std::size_t kRecentMax = 64;  // leases remembered, to tell a repeated Grant

  // --- of the coordinator ---
  /// False if it was granted before.
  bool remember(const wire::Grant& grant);
  /// True: it waits now. `leaving`: nothing new is wanted.
  bool granted(const wire::Grant& grant, bool leaving, const HeldWeights& held, WorkerActions& out);
  void trim(const wire::Trim& trim, WorkerActions& out);
  void cancel(const wire::Cancel& cancel, WorkerActions& out);
  /// Leases of older versions are over.
  void drop_before(std::uint64_t version, WorkerActions& out);
  void drop_pass(std::uint64_t pass, WorkerActions& out);

  // --- of the task; what is told of another number is ignored ---
  void progress(const worker_event::TaskProgress& progress, WorkerActions& out);
  void limited(const worker_event::TaskLimited& limited, WorkerActions& out);
  void begun(const worker_event::TaskBegun& begun, WorkerActions& out);
  /// True: it has ended, and the device is free.
  bool finished(const worker_event::TaskFinished& finished, WorkerActions& out);
  bool failed(const worker_event::TaskFailed& failed, WorkerActions& out);

  // --- of the machine ---
  /// The next lease, if none runs and the weights for it are here or on their way.
  void start_next(const HeldWeights& held, WorkerActions& out);
  /// Nothing more comes of the task. `answer`: the coordinator waits for its Finish nevertheless.
  void abandon(WorkerReason reason, bool answer, WorkerActions& out);
  /// Gives back all that has not begun, because nothing new is wanted.
  void give_back(WorkerActions& out);
  /// The session is over.
  void reset(WorkerReason reason, WorkerActions& out);

  [[nodiscard]] bool busy() const noexcept { return running_.has_value(); }
  /// The lease that is computed; 0: none, or it waits for weights.
  [[nodiscard]] std::uint64_t computes(std::optional<std::uint64_t> version) const noexcept;
  /// A task whose result is wanted waits for weights that are not those of `version`.
  [[nodiscard]] bool waits(std::optional<std::uint64_t> version) const noexcept;
  /// The lease being computed, if what comes out of task `number` is still wanted.
  [[nodiscard]] const wire::Grant* wanted(std::uint64_t number) const noexcept;
  /// Samples of ours since the last call.
  std::uint64_t take_samples() noexcept;

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
  [[nodiscard]] Running* running(std::uint64_t number) noexcept;
  std::deque<Queued>::iterator queued_lease(std::uint64_t lease);
  static void finish_empty(const wire::Grant& lease, WorkerReason reason, WorkerActions& out);

  std::deque<Queued> queue_;
  std::array<std::uint64_t, kRecentMax> recent_{};
  std::size_t recent_used_ = 0;
  std::optional<Running> running_;
  std::uint64_t numbers_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace motley::cluster
