// WorkerMachine: leases and the one task that runs.
#include <algorithm>

#include "base/assert.h"
#include "cluster/worker.h"
#include "modes/exact/pass.h"
#include "motley/computation.h"

namespace motley::cluster {

using Kind = WorkerAction::Kind;

void WorkerMachine::finish_empty(const wire::Grant& lease, WorkerReason reason) {
  WorkerAction& action = act(Kind::send_finish, reason);
  action.lease = lease;
  action.count = 0;
}

bool WorkerMachine::remember(const wire::Grant& grant) {
  const std::size_t known = std::min(recent_used_, kRecentMax);
  if (std::find(recent_.begin(), recent_.begin() + known, grant.lease) != recent_.begin() + known) return false;
  recent_[recent_used_++ % kRecentMax] = grant.lease;
  return true;
}

void WorkerMachine::on(const wire::Grant& grant) {
  if (!open_ || !admitted_ || !remember(grant)) return;
  confirmed_ = confirmed_ || version_.has_value();
  if (modes::PassId::unpack(grant.pass).kind == PassKind::calibrate) {  // a parked worker hears of no pass
    know_closed(grant.version);
    move_on();
  }
  if (state_ == WorkerState::leaving) {
    finish_empty(grant, WorkerReason::leave_asked);
    return;
  }
  if (grant.count == 0 || grant.version < closed_ || (version_ && grant.version < *version_)) {
    finish_empty(grant, WorkerReason::lease_stale);
    return;
  }
  if (queue_.size() == kLeasesMax) {
    finish_empty(grant, WorkerReason::too_many_leases);
    return;
  }
  wire::Grant& lease = queue_.emplace_back(Queued{.lease = grant}).lease;
  if (lease.limit == 0 || lease.limit > lease.count) lease.limit = lease.count;
  start_next();
}

// The forward pass needs the first layers first: it starts while the others are still on their way. An evaluation needs
// all, and what a calibration measures shall not be disturbed.
bool WorkerMachine::can_start(const wire::Grant& lease) const {
  if (!version_ || lease.version == *version_) return version_.has_value();
  const bool train = modes::PassId::unpack(lease.pass).kind == PassKind::train;
  return train && confirmed_ && lease.version == *version_ + 1 && lease.version == closed_;
}

void WorkerMachine::start_next() {
  if (running_ || queue_.empty() || state_ == WorkerState::leaving || !can_start(queue_.front().lease)) return;
  running_ = Running{};
  running_->number = ++task_numbers_;
  running_->lease = queue_.front().lease;
  running_->trim = queue_.front().trim;
  queue_.pop_front();
  WorkerAction& action = act(Kind::start_task, WorkerReason::lease_granted);
  action.number = running_->number;
  action.lease = running_->lease;
}

void WorkerMachine::abandon_task(WorkerReason reason, bool answer) {
  if (!running_) return;
  running_->answer = answer;
  if (running_->mute) return;
  running_->mute = true;
  WorkerAction& action = act(Kind::limit_task, reason);
  action.number = running_->number;
  action.count = 0;
}

std::deque<WorkerMachine::Queued>::iterator WorkerMachine::queued_lease(std::uint64_t lease) {
  return std::find_if(queue_.begin(), queue_.end(), [&](const Queued& queued) { return queued.lease.lease == lease; });
}

void WorkerMachine::on(const wire::Trim& trim) {
  if (!open_ || !admitted_) return;
  const auto queued = queued_lease(trim.lease);
  if (queued != queue_.end()) {
    if (trim.number <= queued->trim) return;  // it came twice
    queued->trim = trim.number;
    queued->lease.limit = std::min(queued->lease.count, trim.count);
    if (queued->lease.limit == 0) {
      finish_empty(queued->lease, WorkerReason::lease_trimmed);
      queue_.erase(queued);
      return;
    }
    WorkerAction& action = act(Kind::send_progress, WorkerReason::lease_trimmed);
    action.lease = queued->lease;
    action.limit = queued->lease.limit;
    action.trim = trim.number;
    return;
  }
  if (!running_ || running_->lease.lease != trim.lease || running_->begun || running_->mute) return;
  if (trim.number <= running_->trim) return;
  const std::uint64_t limit = std::min(std::max(trim.count, running_->done), running_->lease.count);
  if (limit == 0) {
    abandon_task(WorkerReason::lease_trimmed, true);
    return;
  }
  running_->trim = trim.number;
  ++running_->limits_open;
  WorkerAction& action = act(Kind::limit_task, WorkerReason::lease_trimmed);
  action.number = running_->number;
  action.count = limit;
}

void WorkerMachine::on(const worker_event::TaskLimited& limited) {
  if (!running_ || running_->number != limited.number) return;
  // Of several Trims the last decides. After Begin nothing need be said: it named the range.
  if (--running_->limits_open > 0 || running_->begun || running_->mute) return;
  WorkerAction& action = act(Kind::send_progress, WorkerReason::lease_trimmed);
  action.lease = running_->lease;
  action.count = running_->done;
  action.limit = limited.count;
  action.trim = running_->trim;
}

void WorkerMachine::on(const wire::Cancel& cancel) {
  if (!open_ || !admitted_) return;
  const auto queued = queued_lease(cancel.lease);
  if (queued != queue_.end()) {
    finish_empty(queued->lease, WorkerReason::lease_cancelled);
    queue_.erase(queued);
    return;
  }
  if (!running_ || running_->lease.lease != cancel.lease || running_->begun || running_->mute) return;
  abandon_task(WorkerReason::lease_cancelled, true);
}

void WorkerMachine::on(const worker_event::TaskProgress& progress) {
  if (!running_ || running_->number != progress.number) return;
  running_->done = std::max(running_->done, progress.done);
  if (running_->mute || running_->begun) return;  // Begin says it all
  WorkerAction& action = act(Kind::send_progress, WorkerReason::micro_batch_done);
  action.lease = running_->lease;
  action.count = running_->done;
}

void WorkerMachine::on(const worker_event::TaskBegun& begun) {
  if (!running_ || running_->number != begun.number || running_->mute) return;
  MOTLEY_ASSERT(!running_->begun && begun.count > 0 && begun.count <= running_->lease.count);
  running_->begun = true;
  WorkerAction& action = act(Kind::send_begin, WorkerReason::task_done);
  action.lease = running_->lease;
  action.count = begun.count;
}

void WorkerMachine::on(const worker_event::TaskFinished& finished) {
  if (!running_ || running_->number != finished.number) return;
  if (!running_->mute) {
    WorkerAction& action = act(Kind::send_finish, WorkerReason::task_done);
    action.lease = running_->lease;
    action.count = finished.count;
    if (running_->lease.pass >> 56 == static_cast<std::uint64_t>(PassKind::train)) samples_mine_ += finished.count;
  } else if (running_->answer) {
    finish_empty(running_->lease, WorkerReason::lease_cancelled);
  }
  task_ended();
}

void WorkerMachine::on(const worker_event::TaskFailed& failed) {
  if (!running_ || running_->number != failed.number) return;
  if (!running_->mute) {
    act(Kind::send_failed, WorkerReason::task_failed).lease = running_->lease;
  } else if (running_->answer) {
    finish_empty(running_->lease, WorkerReason::lease_cancelled);
  }
  task_ended();
}

void WorkerMachine::task_ended() {
  running_.reset();
  if (prepare_pending_) {
    prepare_pending_ = false;
    act(Kind::prepare, WorkerReason::spec_arrived);
  }
  if (open_) start_next();
}

}  // namespace motley::cluster
