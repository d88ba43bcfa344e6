// Steps that a worker makes by itself, as the coordinator takes them over.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/coordinator_impl.h"

namespace motley::engine {

void Coordinator::Impl::lend(const modes::Action& action) {
  MOTLEY_ASSERT(action.range.first == server.version());
  on_device.clear();
  const StretchOrder order{.number = action.lease,
                           .steps = action.range.count,
                           .batches = machine.batches(),
                           .opened = now,
                           .server = std::make_shared<ps::Server>(server.fork()),
                           .halves = options.adapt_batch,
                           .grain = options.grain,
                           .state = options.state,
                           .wants_gradients = options.wants_gradients};
  if (output.lend(action.session, order)) return;
  feed(modes::StretchEnded{action.session, action.lease, true});
}

StepClosed Coordinator::Impl::describe_step(const Session& session, const StretchStep& step) const {
  const StepRange pass = machine.batches().range(step.step);
  const double waited = std::max(0.0, seconds(step.duration) - step.compute_seconds);
  StepClosed closed{
      .step = step.step,
      .epoch = pass.epoch,
      .samples = pass.count,
      .weight = step.weight,
      .loss_sum = step.loss_sum,
      .gradient_norm = step.gradient_norm,
      .learning_rate = step.learning_rate,
      .noise = noise_now(),
      .global_batch = machine.batches().batch(step.step),
      .batch_change = {},
      .duration = step.duration,
      .ranges = {},
      .workers = {{session.worker, session.name, pass.count, step.compute_seconds, waited, step.compute_seconds}},
      .gradients = step.gradients};
  for (const std::uint64_t count : step.parts) {
    const std::uint64_t first = closed.ranges.empty() ? 0 : closed.ranges.back().first + closed.ranges.back().count;
    closed.ranges.push_back({first, count, session.name});
  }
  return closed;
}

void Coordinator::Impl::take_steps(const Session& session, const ps::Snapshot& after) {
  const std::vector<StretchStep> steps = std::exchange(on_device, {});
  MOTLEY_ASSERT(after.version == server.version() + steps.size());
  server.adopt(after);
  current.set_version(server.version());
  next.set_version(server.version() + 1);
  for (ChunkId chunk = 0; chunk < after.weights.size(); ++chunk) current.set(chunk, after.weights[chunk]);
  for (const StretchStep& step : steps) {
    MOTLEY_ASSERT(step.step == machine.version());
    if (step.noise) noise.record(*step.noise);
    const StepClosed closed = describe_step(session, step);
    pace.alone(session.worker, closed.samples, step.compute_seconds, seconds(step.duration));
    output.step_closed(closed);
    feed(modes::StretchStep{session.id, step.number, next_batch(closed).has_value()});
  }
}

void Coordinator::stretch_step(SessionId session, const StretchStep& step, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const auto& stretch = c.machine.stretch();
  if (!stretch || stretch->session != session || stretch->lease != step.number) return c.drop_frame();
  c.machine.heard(session, c.now);
  c.on_device.push_back(step);
  if (step.after.weights.empty()) return c.machine.made_unseen(c.now);
  c.take_steps(c.sessions.at(session), step.after);
}

void Coordinator::stretch_ended(SessionId session, const StretchEnd& end, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const auto& stretch = c.machine.stretch();
  if (!stretch || stretch->session != session || stretch->lease != end.number) return c.drop_frame();
  if (!end.after.weights.empty()) c.take_steps(c.sessions.at(session), end.after);
  if (end.failure) {
    const std::size_t lost = std::exchange(c.on_device, {}).size();
    c.output.warning(c.sessions.at(session).name + " could not go on alone: " + end.failure->message +
                     (lost == 0 ? "; the step is" : "; it and the " + std::to_string(lost) + " before it are") +
                     " made again by lease");
  }
  c.feed(modes::StretchEnded{session, end.number, end.failure.has_value()});
}

}  // namespace motley::engine
