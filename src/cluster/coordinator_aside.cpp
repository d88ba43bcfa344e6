// A parked worker evaluates beside the training, at a version of its own, so that the others need not stop for it.

#include <algorithm>

#include "cluster/coordinator_machine.h"

namespace motley::cluster {

void CoordinatorMachine::evaluate_aside(Time now) {
  if (!config_.evaluates_aside || config_.holds != Holds::never || aside_ || version_ >= steps())
    return;  // the last evaluation is everybody's
  for (Member& member : members_.all()) {
    if (member.state != MemberState::parked || member.trial != 0 || member.failed_aside) continue;
    aside_ = Aside{.session = member.session,
                   .worker = member.worker,
                   .lease = leases_.next_id(),
                   .version = version_,
                   .epoch = batches_.range(version_ - 1).epoch,
                   .deadline = now + pace_.allowance(PassKind::evaluate, member.worker, config_.test_samples)};
    member.holds = version_;
    const Reason reason{.code = ReasonCode::aside, .worker = member.worker};
    act(ActionKind::send_weights, reason).session = member.session;
    Action& action = act(ActionKind::evaluate_aside, reason);
    action.session = member.session;
    action.lease = aside_->lease;
    action.range = {0, config_.test_samples};
    action.version = version_;
    evaluation_pending_ = false;
    return;
  }
}

void CoordinatorMachine::on(const EvaluatedAside& event, Time) {
  if (!aside_ || aside_->session != event.session || aside_->lease != event.lease) return;
  if (!event.whole) return drop_aside(true);
  aside_.reset();
}

void CoordinatorMachine::watch_aside(Time now) {
  if (aside_ && now >= aside_->deadline) drop_aside(true);
}

// What it owes is made up for with the version of the day.
void CoordinatorMachine::drop_aside(bool failed) {
  if (Member* member = members_.find(aside_->session)) {
    member->failed_aside = failed;
    Action& cancel = act(ActionKind::cancel_aside, {.code = ReasonCode::overdue, .worker = member->worker});
    cancel.session = member->session;
    cancel.lease = aside_->lease;
    cancel.version = aside_->version;
  }
  aside_.reset();
  evaluation_pending_ = evaluation_pending_ || !pass_ || training();
}

}  // namespace motley::cluster
