#include "cluster/worker_tasks.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "modes/work/pass.h"
#include "motley/task.h"

namespace motley::cluster {

using Kind = WorkerAction::Kind;

namespace {

/// With weights that are made up: of no version, so that it starts at once, and goes on whatever the run does.
bool is_probe(const wire::Grant& lease) { return modes::PassId::unpack(lease.pass).kind == PassKind::probe; }

// The forward pass needs the first layers first: it starts while the others are still on their way. An evaluation needs
// all, and what a calibration measures shall not be disturbed.
bool can_start(const wire::Grant& lease, const HeldWeights& held) {
  if (is_probe(lease)) return true;
  if (!held.version || lease.version == *held.version) return held.version.has_value();
  const bool train = modes::PassId::unpack(lease.pass).kind == PassKind::train;
  const bool due = lease.version == held.closed || lease.ahead > 0;
  return train && held.confirmed && lease.version == *held.version + 1 && due;
}

}  // namespace

void WorkerTasks::finish_empty(const wire::Grant& lease, WorkerReason reason, WorkerActions& out) {
  WorkerAction& action = out.add(Kind::send_finish, reason);
  action.lease = lease;
  action.count = 0;
}

bool WorkerTasks::remember(const wire::Grant& grant) {
  const std::size_t known = std::min(recent_used_, kRecentMax);
  if (std::find(recent_.begin(), recent_.begin() + known, grant.lease) != recent_.begin() + known) return false;
  recent_[recent_used_++ % kRecentMax] = grant.lease;
  return true;
}

bool WorkerTasks::granted(const wire::Grant& grant, bool leaving, const HeldWeights& held, WorkerActions& out) {
  const bool late = grant.version < held.closed || (held.version && grant.version < *held.version);
  const bool stale = grant.count == 0 || (late && !is_probe(grant));
  if (leaving || stale || queue_.size() == kLeasesMax) {
    finish_empty(grant,
                 leaving ? WorkerReason::leave_asked
                 : stale ? WorkerReason::lease_stale
                         : WorkerReason::too_many_leases,
                 out);
    return false;
  }
  wire::Grant& lease = queue_.emplace_back(Queued{.lease = grant}).lease;
  if (lease.limit == 0 || lease.limit > lease.count) lease.limit = lease.count;
  return true;
}

void WorkerTasks::start_next(const HeldWeights& held, WorkerActions& out) {
  if (running_ || queue_.empty() || !can_start(queue_.front().lease, held)) return;
  running_ = Running{};
  running_->number = ++numbers_;
  running_->lease = queue_.front().lease;
  running_->trim = queue_.front().trim;
  queue_.pop_front();
  WorkerAction& action = out.add(Kind::start_task, WorkerReason::lease_granted);
  action.number = running_->number;
  action.lease = running_->lease;
}

void WorkerTasks::abandon(WorkerReason reason, bool answer, WorkerActions& out) {
  if (!running_) return;
  running_->answer = answer;
  if (running_->mute) return;
  running_->mute = true;
  WorkerAction& action = out.add(Kind::limit_task, reason);
  action.number = running_->number;
  action.count = 0;
}

void WorkerTasks::give_back(WorkerActions& out) {
  if (running_ && !running_->begun && !running_->mute)
    out.add(Kind::finish_early, WorkerReason::leave_asked).number = running_->number;
  for (const Queued& queued : queue_) finish_empty(queued.lease, WorkerReason::leave_asked, out);
  queue_.clear();
}

void WorkerTasks::reset(WorkerReason reason, WorkerActions& out) {
  samples_ = 0;
  queue_.clear();
  recent_used_ = 0;
  abandon(reason, false, out);
}

void WorkerTasks::drop_before(std::uint64_t version, WorkerActions& out) {
  const auto over = [version](const wire::Grant& lease) { return lease.version < version && !is_probe(lease); };
  std::erase_if(queue_, [&](const Queued& queued) { return over(queued.lease); });
  if (running_ && over(running_->lease)) abandon(WorkerReason::pass_closed, false, out);
}

void WorkerTasks::drop_pass(std::uint64_t pass, WorkerActions& out) {
  std::erase_if(queue_, [pass](const Queued& queued) { return queued.lease.pass == pass; });
  if (running_ && running_->lease.pass == pass) abandon(WorkerReason::pass_closed, false, out);
}

std::deque<WorkerTasks::Queued>::iterator WorkerTasks::queued_lease(std::uint64_t lease) {
  return std::find_if(queue_.begin(), queue_.end(), [&](const Queued& queued) { return queued.lease.lease == lease; });
}

void WorkerTasks::trim(const wire::Trim& trim, WorkerActions& out) {
  const auto queued = queued_lease(trim.lease);
  if (queued != queue_.end()) {
    if (trim.number <= queued->trim) return;  // it came twice
    queued->trim = trim.number;
    queued->lease.limit = std::min(queued->lease.count, trim.count);
    if (queued->lease.limit == 0) {
      finish_empty(queued->lease, WorkerReason::lease_trimmed, out);
      queue_.erase(queued);
      return;
    }
    WorkerAction& action = out.add(Kind::send_progress, WorkerReason::lease_trimmed);
    action.lease = queued->lease;
    action.limit = queued->lease.limit;
    action.trim = trim.number;
    return;
  }
  if (!running_ || running_->lease.lease != trim.lease || running_->begun || running_->mute) return;
  if (trim.number <= running_->trim) return;
  const std::uint64_t limit = std::min(std::max(trim.count, running_->done), running_->lease.count);
  if (limit == 0) return abandon(WorkerReason::lease_trimmed, true, out);
  running_->trim = trim.number;
  ++running_->limits_open;
  WorkerAction& action = out.add(Kind::limit_task, WorkerReason::lease_trimmed);
  action.number = running_->number;
  action.count = limit;
}

void WorkerTasks::cancel(const wire::Cancel& cancel, WorkerActions& out) {
  const auto queued = queued_lease(cancel.lease);
  if (queued != queue_.end()) {
    finish_empty(queued->lease, WorkerReason::lease_cancelled, out);
    queue_.erase(queued);
    return;
  }
  if (!running_ || running_->lease.lease != cancel.lease || running_->begun || running_->mute) return;
  abandon(WorkerReason::lease_cancelled, true, out);
}

WorkerTasks::Running* WorkerTasks::running(std::uint64_t number) noexcept {
  return running_ && running_->number == number ? &*running_ : nullptr;
}

void WorkerTasks::limited(const worker_event::TaskLimited& limited, WorkerActions& out) {
  Running* task = running(limited.number);
  // Of several Trims the last decides. After Begin nothing need be said: it named the range.
  if (task == nullptr || --task->limits_open > 0 || task->begun || task->mute) return;
  WorkerAction& action = out.add(Kind::send_progress, WorkerReason::lease_trimmed);
  action.lease = task->lease;
  action.count = task->done;
  action.limit = limited.count;
  action.trim = task->trim;
}

void WorkerTasks::progress(const worker_event::TaskProgress& progress, WorkerActions& out) {
  Running* task = running(progress.number);
  if (task == nullptr) return;
  task->done = std::max(task->done, progress.done);
  if (task->mute || task->begun) return;  // Begin says it all
  WorkerAction& action = out.add(Kind::send_progress, WorkerReason::micro_batch_done);
  action.lease = task->lease;
  action.count = task->done;
}

void WorkerTasks::begun(const worker_event::TaskBegun& begun, WorkerActions& out) {
  Running* task = running(begun.number);
  if (task == nullptr || task->mute) return;
  MOTLEY_ASSERT(!task->begun && begun.count > 0 && begun.count <= task->lease.count);
  task->begun = true;
  WorkerAction& action = out.add(Kind::send_begin, WorkerReason::task_done);
  action.lease = task->lease;
  action.count = begun.count;
}

bool WorkerTasks::finished(const worker_event::TaskFinished& finished, WorkerActions& out) {
  const Running* task = running(finished.number);
  if (task == nullptr) return false;
  if (!task->mute) {
    WorkerAction& action = out.add(Kind::send_finish, WorkerReason::task_done);
    action.lease = task->lease;
    action.count = finished.count;
    if (modes::PassId::unpack(task->lease.pass).kind == PassKind::train) samples_ += finished.count;
  } else if (task->answer) {
    finish_empty(task->lease, WorkerReason::lease_cancelled, out);
  }
  running_.reset();
  return true;
}

bool WorkerTasks::failed(const worker_event::TaskFailed& failed, WorkerActions& out) {
  const Running* task = running(failed.number);
  if (task == nullptr) return false;
  if (!task->mute) {
    out.add(Kind::send_failed, WorkerReason::task_failed).lease = task->lease;
  } else if (task->answer) {
    finish_empty(task->lease, WorkerReason::lease_cancelled, out);
  }
  running_.reset();
  return true;
}

std::uint64_t WorkerTasks::computes(std::optional<std::uint64_t> version) const noexcept {
  return running_ && running_->lease.version == version ? running_->lease.lease : 0;
}

bool WorkerTasks::waits(std::optional<std::uint64_t> version) const noexcept {
  return running_ && !running_->mute && running_->lease.version != version && !is_probe(running_->lease);
}

const wire::Grant* WorkerTasks::wanted(std::uint64_t number) const noexcept {
  return running_ && running_->number == number && !running_->mute ? &running_->lease : nullptr;
}

std::uint64_t WorkerTasks::take_samples() noexcept { return std::exchange(samples_, 0); }

}  // namespace motley::cluster
