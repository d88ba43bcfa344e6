// Steps that a worker makes by itself, as the coordinator takes them over.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/coordinator_impl.h"

namespace motley::engine {

void Coordinator::Impl::lend(const cluster::Action& action) {
  MOTLEY_ASSERT(action.range.first == server.version());
  const StretchOrder order{.number = action.lease,
                           .steps = action.range.count,
                           .batches = machine.batches(),
                           .opened = now,
                           .server = std::make_shared<ps::Server>(server.fork()),
                           .halves = options.adapt_batch,
                           .grain = options.grain};
  if (output.lend(action.session, order)) return;
  feed(cluster::StretchEnded{action.session, action.lease, true});
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

void Coordinator::Impl::take_step(const Session& session, const StretchStep& step) {
  MOTLEY_ASSERT(step.step == server.version());
  if (step.noise) noise.record(*step.noise);
  const StepClosed closed = describe_step(session, step);
  server.adopt(step.after);
  current.set_version(server.version());
  next.set_version(server.version() + 1);
  for (ChunkId chunk = 0; chunk < step.after.weights.size(); ++chunk) current.set(chunk, step.after.weights[chunk]);
  pace.alone(session.worker, closed.samples, step.compute_seconds, seconds(step.duration));
  output.step_closed(closed);
  feed(cluster::StretchStep{session.id, step.number, next_batch(closed).has_value()});
}

void Coordinator::stretch_step(SessionId session, const StretchStep& step, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const auto& stretch = c.machine.stretch();
  if (!stretch || stretch->session != session || stretch->lease != step.number) return c.drop_frame();
  c.machine.heard(session, c.now);
  c.take_step(c.sessions.at(session), step);
}

void Coordinator::stretch_ended(SessionId session, std::uint64_t number, const std::optional<Error>& failure,
                                Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const auto& stretch = c.machine.stretch();
  if (!stretch || stretch->session != session || stretch->lease != number) return c.drop_frame();
  if (failure) {
    c.output.warning(c.sessions.at(session).name + " could not go on alone: " + failure->message +
                     "; the step is made again by lease");
  }
  c.feed(cluster::StretchEnded{session, number, failure.has_value()});
}

}  // namespace motley::engine
