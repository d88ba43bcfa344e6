#include "cluster/worker.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::cluster {

using Kind = WorkerAction::Kind;

void WorkerMachine::decide(const WorkerEvent& event, Time now, WorkerActions& actions) {
  now_ = std::max(now_, now);
  actions_ = &actions;
  std::visit([this](const auto& e) { on(e); }, event);
  actions_ = nullptr;
  MOTLEY_ASSERT(!running_ || running_->number == task_numbers_);
  MOTLEY_ASSERT(queue_.size() <= kLeasesMax);
}

const wire::Grant* WorkerMachine::wanted(std::uint64_t number) const noexcept {
  return running_ && running_->number == number && !running_->mute ? &running_->lease : nullptr;
}

// --- sessions ---

void WorkerMachine::on(const worker_event::Connected&) {
  MOTLEY_ASSERT(!open_);
  open_ = true;
  state_ = WorkerState::connecting;
  last_tick_ = last_heard_ = last_sent_ = last_weights_ = now_;
  refresh_wait_ = 2 * times_.silence;
  if (leaving_) end_session(false, WorkerReason::leave_asked);
}

void WorkerMachine::on(const worker_event::Disconnected&) {
  if (open_) end_session(true, WorkerReason::channel_lost);
}

void WorkerMachine::end_session(bool reconnect, WorkerReason reason) {
  MOTLEY_ASSERT(open_);
  open_ = admitted_ = confirmed_ = prepare_pending_ = stepping_aside_ = false;
  state_ = WorkerState::connecting;
  version_.reset();
  whole_.reset();
  reported_pass_.reset();
  closed_ = 0;
  samples_mine_ = 0;
  queue_.clear();
  recent_used_ = 0;
  abandon_task(reason, false);
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
  state_ = WorkerState::loading;
  // The model may be in use by a task of an earlier session until that has noticed that it is to stop.
  prepare_pending_ = running_.has_value();
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

void WorkerMachine::on(const worker_event::Admitted&) {
  if (!open_ || admitted_ || state_ != WorkerState::loading) return;
  admitted_ = true;
  state_ = WorkerState::syncing;
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
  state_ = WorkerState::leaving;
  act(Kind::send_yield, WorkerReason::leave_asked);
  if (running_ && !running_->begun && !running_->mute) {
    act(Kind::finish_early, WorkerReason::leave_asked).number = running_->number;
  }
  for (const Queued& queued : queue_) finish_empty(queued.lease, WorkerReason::leave_asked);
  queue_.clear();
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
    const bool computes = running_ && running_->lease.version == version_;  // and waits for no weights
    act(Kind::send_heartbeat, WorkerReason::time_to_heartbeat).number = computes ? running_->lease.lease : 0;
  }
  const bool behind =
      state_ == WorkerState::syncing || (state_ == WorkerState::member && version_ && closed_ > *version_);
  if (!behind) {
    last_weights_ = now_;
  } else if (now_ - last_weights_ > refresh_wait_) {
    last_weights_ = now_;
    refresh_wait_ = std::min<Duration>(2 * refresh_wait_, kRefreshWaitMax);
    start_over(WorkerReason::versions_missed, 0);
  }
}

void WorkerMachine::start_over(WorkerReason reason, std::uint64_t differs) {
  if (state_ == WorkerState::member) state_ = WorkerState::syncing;
  confirmed_ = false;
  if (running_ && !running_->mute && running_->lease.version != version_) abandon_task(reason, true);
  version_.reset();
  whole_.reset();
  act(Kind::forget_weights, reason);
  act(Kind::send_refresh, reason).version = differs;
}

// --- versions ---

void WorkerMachine::know_closed(std::uint64_t version) {
  closed_ = std::max(closed_, version);
  // Leases of passes that are over.
  std::erase_if(queue_, [this](const Queued& queued) { return queued.lease.version < closed_; });
  if (running_ && running_->lease.version < closed_) abandon_task(WorkerReason::pass_closed, false);
}

void WorkerMachine::move_on() {
  if (!admitted_ || !whole_) return;
  const bool joining = !version_ || !confirmed_;
  if (!joining && *whole_ > closed_) return;  // staged until the pass is closed
  MOTLEY_ASSERT(!version_ || *whole_ > *version_);
  const bool jumped = version_ && *whole_ > *version_ + 1;
  know_closed(*whole_);
  version_ = whole_;
  whole_.reset();
  act(Kind::adopt, joining ? WorkerReason::version_complete : WorkerReason::pass_closed).version = *version_;
  // The coordinator waits for this from whoever it does not count as a member.
  if (joining || jumped) act(Kind::send_synced, WorkerReason::version_complete).version = *version_;
  if (state_ == WorkerState::syncing) state_ = WorkerState::member;
  start_next();
}

void WorkerMachine::on(const worker_event::VersionSeen& seen) {
  // A chunk of t + 2 exists only when t + 1 is closed, whatever became of the message that says so.
  if (!open_ || !admitted_ || seen.version == 0) return;
  know_closed(seen.version - 1);
  move_on();
}

void WorkerMachine::on(const worker_event::WeightsForgotten&) {
  MOTLEY_ASSERT(!version_);
  whole_.reset();
}

void WorkerMachine::on(const worker_event::VersionWhole& whole) {
  if (!open_ || (version_ && whole.version <= *version_)) return;
  if (!whole_ || whole.version > *whole_) whole_ = whole.version;
  move_on();
}

void WorkerMachine::on(const worker_event::WeightsDiffer& differ) {
  if (open_ && admitted_) start_over(WorkerReason::weights_differ, differ.version);
}

void WorkerMachine::on(const wire::PassOpened& opened) {
  if (!open_ || !admitted_) return;
  confirmed_ = confirmed_ || version_.has_value();
  know_closed(opened.version);
  move_on();
}

void WorkerMachine::on(const wire::PassClosed& closed) {
  if (!open_ || !admitted_) return;
  std::erase_if(queue_, [&](const Queued& queued) { return queued.lease.pass == closed.pass; });
  if (running_ && running_->lease.pass == closed.pass) abandon_task(WorkerReason::pass_closed, false);
  const bool advances = closed.version > closed_ || (version_ && closed.version > *version_);
  know_closed(closed.version);
  if (advances && reported_pass_ != closed.pass) {
    reported_pass_ = closed.pass;
    WorkerAction& action = act(Kind::step_done, WorkerReason::pass_closed);
    action.version = closed.version;
    action.count = samples_mine_;
    samples_mine_ = 0;
  }
  move_on();
  start_next();
}

}  // namespace motley::cluster
