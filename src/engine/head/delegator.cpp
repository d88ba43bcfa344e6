#include "engine/head/delegator.h"

#include <algorithm>
#include <memory>
#include <string>

#include "base/assert.h"

namespace motley::engine {

void Delegator::delegate(const modes::Action& action, const LossState& state, Time now) {
  MOTLEY_ASSERT(action.range.first == parts_.server.version());
  on_device_.clear();
  const DelegatedSteps order{.number = action.lease,
                             .steps = action.range.count,
                             .batches = parts_.machine.batches(),
                             .opened = now,
                             .server = std::make_shared<ps::Server>(parts_.server.fork()),
                             .state = state};
  if (parts_.output.delegate(action.session, order)) return;
  feed_(modes::DelegationEnded{action.session, action.lease, true});
}

StepClosed Delegator::describe(const Session& session, const DelegatedStep& step) const {
  const BatchPlan& batches = parts_.machine.batches();
  const StepRange pass = batches.range(step.step);
  const double waited = std::max(0.0, seconds(step.duration) - step.compute_seconds);
  return {.step = step.step,
          .epoch = pass.epoch,
          .samples = pass.count,
          .weight = step.weight,
          .loss_sum = step.loss_sum,
          .gradient_norm = step.gradient_norm,
          .learning_rate = step.learning_rate,
          .noise = parts_.noise.known(),
          .global_batch = batches.batch(step.step),
          .duration = step.duration,
          .ranges = {{0, step.samples, session.name}},
          .workers = {{session.worker, session.name, pass.count, step.compute_seconds, waited, step.compute_seconds}}};
}

void Delegator::take_steps(const Session& session, const ps::Snapshot& after) {
  const std::vector<DelegatedStep> steps = std::exchange(on_device_, {});
  MOTLEY_ASSERT(after.version == parts_.server.version() + steps.size());
  parts_.server.adopt(after);
  parts_.weights.adopt(after);
  const cluster::CoordinatorMachine& machine = parts_.machine;
  for (const DelegatedStep& step : steps) {
    MOTLEY_ASSERT(step.step == machine.version());
    const StepClosed closed = describe(session, step);
    parts_.performance.alone(session.worker, closed.samples, step.compute_seconds, seconds(step.duration));
    parts_.output.step_closed(closed);
    feed_(modes::DelegatedStep{session.id, step.number});
  }
}

bool Delegator::open(SessionId session, std::uint64_t number) const {
  const auto& delegation = parts_.machine.delegation();
  return delegation && delegation->session == session && delegation->lease == number;
}

void Delegator::step(SessionId session, const DelegatedStep& step, Time now) {
  if (!open(session, step.number)) return;
  parts_.machine.heard(session, now);
  on_device_.push_back(step);
  if (step.after.weights.empty()) return parts_.machine.made_unseen(now);
  take_steps(parts_.sessions.at(session), step.after);
}

void Delegator::ended(SessionId session, const DelegationEnd& end) {
  if (!open(session, end.number)) return;
  if (!end.after.weights.empty()) take_steps(parts_.sessions.at(session), end.after);
  if (end.failure) {
    const std::size_t lost = std::exchange(on_device_, {}).size();
    parts_.output.warning(parts_.sessions.at(session).name + " could not go on alone: " + end.failure->message +
                          (lost == 0 ? "; the step is" : "; it and the " + std::to_string(lost) + " before it are") +
                          " made again by lease");
  }
  feed_(modes::DelegationEnded{session, end.number, end.failure.has_value()});
}

}  // namespace motley::engine
