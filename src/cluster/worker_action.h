#pragma once
// What the worker's machine wants done, each with its reason. Values without owned memory; one thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/messages.h"

namespace motley::cluster {

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

}  // namespace motley::cluster
