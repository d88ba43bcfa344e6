#include "cluster/worker.h"

#include <algorithm>

#include "base/assert.h"
#include "modes/work/pass.h"
#include "motley/task.h"

namespace motley::cluster {

using Kind = WorkerAction::Kind;

namespace {

// A session may end in any state, and then everything begins again.
bool may_follow(WorkerState from, WorkerState to) noexcept {
  switch (to) {
    case WorkerState::connecting:
      return true;
    case WorkerState::loading:
      return from == WorkerState::connecting;
    case WorkerState::syncing:
      return from == WorkerState::loading || from == WorkerState::member;
    case WorkerState::member:
      return from == WorkerState::syncing;
    case WorkerState::leaving:
      return from == WorkerState::syncing || from == WorkerState::member;
  }
  return false;
}

}  // namespace

void WorkerMachine::decide(const WorkerEvent& event, Time now, WorkerActions& actions) {
  now_ = std::max(now_, now);
  actions_ = &actions;
  std::visit([this](const auto& e) { on(e); }, event);
  actions_ = nullptr;
}

void WorkerMachine::enter(WorkerState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

// --- sessions ---

void WorkerMachine::on(const worker_event::Connected&) {
  MOTLEY_ASSERT(!open_);
  open_ = true;
  enter(WorkerState::connecting);
  last_tick_ = last_heard_ = last_sent_ = last_weights_ = now_;
  refresh_wait_ = 2 * times_.silence;
  if (leaving_) end_session(false, WorkerReason::leave_asked);
}

void WorkerMachine::on(const worker_event::Disconnected&) {
  if (open_) end_session(true, WorkerReason::channel_lost);
}

void WorkerMachine::end_session(bool reconnect, WorkerReason reason) {
  MOTLEY_ASSERT(open_);
  open_ = admitted_ = prepare_pending_ = stepping_aside_ = false;
  enter(WorkerState::connecting);
  held_ = {};
  whole_.reset();
  reported_pass_.reset();
  tasks_.reset(reason, *actions_);
  act(Kind::forget_weights, reason);
  act(Kind::disconnect, reason).reconnect = reconnect && !leaving_;
}

void WorkerMachine::on(const worker_event::Heard& heard) {
  if (!open_) return;
  last_heard_ = now_;
  if (heard.weights) {
    last_weights_ = now_;
    refresh_wait_ = 2 * times_.silence;
  }
}

void WorkerMachine::on(const worker_event::SpecWhole&) {
  if (!open_ || state_ != WorkerState::connecting) return;
  enter(WorkerState::loading);
  // The model may be in use by a task of an earlier session until that has noticed that it is to stop.
  prepare_pending_ = tasks_.busy();
  if (!prepare_pending_) act(Kind::prepare, WorkerReason::spec_arrived);
}

void WorkerMachine::on(const worker_event::Prepared&) {
  if (!open_ || state_ != WorkerState::loading) return;
  act(Kind::send_ready, WorkerReason::model_ready);
}

void WorkerMachine::on(const worker_event::PrepareFailed&) {
  if (!open_ || state_ != WorkerState::loading) return;
  act(Kind::send_bye, WorkerReason::prepare_failed);
  end_session(false, WorkerReason::prepare_failed);
}

void WorkerMachine::on(const worker_event::DeviceOut&) {
  if (!open_) return act(Kind::disconnect, WorkerReason::prepare_failed).reconnect = false, void();
  act(Kind::send_bye, WorkerReason::prepare_failed);
  end_session(false, WorkerReason::prepare_failed);
}

void WorkerMachine::on(const worker_event::Admitted&) {
  if (!open_ || admitted_ || state_ != WorkerState::loading) return;
  admitted_ = true;
  enter(WorkerState::syncing);
  last_weights_ = now_;
  move_on();
}

void WorkerMachine::on(const wire::Bye& bye) {
  const bool again = bye_means_again(bye.code) || (stepping_aside_ && bye.code == "leave");
  if (open_) end_session(again, WorkerReason::said_bye);
}

void WorkerMachine::on(const worker_event::Malformed&) {
  if (open_) end_session(true, WorkerReason::malformed);
}

void WorkerMachine::on(const worker_event::LeaveAsked& leave) {
  if (leaving_ || (!open_ && !leave.for_good)) return;
  leaving_ = leave.for_good;
  if (!open_) {
    act(Kind::disconnect, WorkerReason::leave_asked).reconnect = false;
    return;
  }
  if (!admitted_) {
    act(Kind::send_bye, WorkerReason::leave_asked);
    end_session(!leave.for_good, WorkerReason::leave_asked);
    return;
  }
  if (state_ == WorkerState::leaving) return;  // was stepping aside
  stepping_aside_ = !leave.for_good;
  enter(WorkerState::leaving);
  act(Kind::send_yield, WorkerReason::leave_asked);
  tasks_.give_back(*actions_);
}

void WorkerMachine::on(const worker_event::Tick&) {
  if (!open_) return;
  // After a pause of this process (sleep, SIGSTOP) what was sent meanwhile is still to be read: nobody is dead yet.
  if (const Duration gap = now_ - last_tick_; gap > kWokeGap) {
    last_heard_ += gap;
    last_weights_ += gap;
  }
  last_tick_ = now_;
  if (now_ - last_heard_ > times_.silence) {
    end_session(true, WorkerReason::silence);
    return;
  }
  if (now_ - last_sent_ >= times_.heartbeat) {
    last_sent_ = now_;
    act(Kind::send_heartbeat, WorkerReason::time_to_heartbeat).number = tasks_.computes(held_.version);
  }
  const bool behind = state_ == WorkerState::syncing ||
                      (state_ == WorkerState::member && held_.version && held_.closed > *held_.version);
  if (!behind) {
    last_weights_ = now_;
  } else if (now_ - last_weights_ > refresh_wait_) {
    last_weights_ = now_;
    refresh_wait_ = std::min<Duration>(2 * refresh_wait_, kRefreshWaitMax);
    start_over(WorkerReason::versions_missed, 0);
  }
}

void WorkerMachine::start_over(WorkerReason reason, std::uint64_t differs) {
  if (state_ == WorkerState::member) enter(WorkerState::syncing);
  held_.confirmed = false;
  if (tasks_.waits(held_.version)) tasks_.abandon(reason, true, *actions_);
  held_.version.reset();
  whole_.reset();
  act(Kind::forget_weights, reason);
  act(Kind::send_refresh, reason).version = differs;
}

// --- versions ---

void WorkerMachine::know_closed(std::uint64_t version) {
  held_.closed = std::max(held_.closed, version);
  tasks_.drop_before(held_.closed, *actions_);
}

void WorkerMachine::move_on() {
  if (!admitted_ || !whole_) return;
  const bool joining = !held_.version || !held_.confirmed;
  if (!joining && *whole_ > held_.closed) return;  // staged until the pass is closed
  MOTLEY_ASSERT(!held_.version || *whole_ > *held_.version);
  const bool jumped = held_.version && *whole_ > *held_.version + 1;
  know_closed(*whole_);
  held_.version = whole_;
  whole_.reset();
  act(Kind::adopt, joining ? WorkerReason::version_complete : WorkerReason::pass_closed).version = *held_.version;
  // The coordinator waits for this from whoever it does not count as a member.
  if (joining || jumped) act(Kind::send_synced, WorkerReason::version_complete).version = *held_.version;
  if (state_ == WorkerState::syncing) enter(WorkerState::member);
  start_next();
}

void WorkerMachine::on(const worker_event::VersionSeen& seen) {
  // A chunk of t + 2 exists only when t + 1 is closed, whatever became of the message that says so.
  if (!open_ || !admitted_ || seen.version == 0) return;
  know_closed(seen.version - 1);
  move_on();
}

void WorkerMachine::on(const worker_event::WeightsForgotten&) {
  MOTLEY_ASSERT(!held_.version);
  whole_.reset();
}

void WorkerMachine::on(const worker_event::VersionWhole& whole) {
  if (!open_ || (held_.version && whole.version <= *held_.version)) return;
  if (!whole_ || whole.version > *whole_) whole_ = whole.version;
  move_on();
}

void WorkerMachine::on(const worker_event::WeightsDiffer& differ) {
  if (open_ && admitted_) start_over(WorkerReason::weights_differ, differ.version);
}

void WorkerMachine::on(const wire::PassOpened& opened) {
  if (!open_ || !admitted_) return;
  held_.confirmed = held_.confirmed || held_.version.has_value();
  know_closed(opened.version);
  move_on();
}

void WorkerMachine::on(const wire::PassClosed& closed) {
  if (!open_ || !admitted_) return;
  tasks_.drop_pass(closed.pass, *actions_);
  const bool advances = closed.version > held_.closed || (held_.version && closed.version > *held_.version);
  know_closed(closed.version);
  if (advances && reported_pass_ != closed.pass) {
    reported_pass_ = closed.pass;
    WorkerAction& action = act(Kind::step_done, WorkerReason::pass_closed);
    action.version = closed.version;
    action.count = tasks_.take_samples();
  }
  move_on();
  start_next();
}

// --- leases ---

void WorkerMachine::on(const wire::Grant& grant) {
  if (!open_ || !admitted_ || !tasks_.remember(grant)) return;
  held_.confirmed = held_.confirmed || held_.version.has_value();
  if (modes::PassId::unpack(grant.pass).kind == PassKind::calibrate) {  // a parked worker hears of no pass
    know_closed(grant.version);
    move_on();
  }
  if (tasks_.granted(grant, state_ == WorkerState::leaving, held_, *actions_)) start_next();
}

void WorkerMachine::on(const wire::Trim& trim) {
  if (open_ && admitted_) tasks_.trim(trim, *actions_);
}

void WorkerMachine::on(const wire::Cancel& cancel) {
  if (open_ && admitted_) tasks_.cancel(cancel, *actions_);
}

void WorkerMachine::on(const worker_event::TaskProgress& progress) { tasks_.progress(progress, *actions_); }
void WorkerMachine::on(const worker_event::TaskLimited& limited) { tasks_.limited(limited, *actions_); }
void WorkerMachine::on(const worker_event::TaskBegun& begun) { tasks_.begun(begun, *actions_); }

void WorkerMachine::on(const worker_event::TaskFinished& finished) {
  if (tasks_.finished(finished, *actions_)) task_ended();
}

void WorkerMachine::on(const worker_event::TaskFailed& failed) {
  if (tasks_.failed(failed, *actions_)) task_ended();
}

void WorkerMachine::start_next() {
  if (state_ != WorkerState::leaving) tasks_.start_next(held_, *actions_);
}

void WorkerMachine::task_ended() {
  if (prepare_pending_) {
    prepare_pending_ = false;
    act(Kind::prepare, WorkerReason::spec_arrived);
  }
  if (open_) start_next();
}

}  // namespace motley::cluster
