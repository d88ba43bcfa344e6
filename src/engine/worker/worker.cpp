#include "engine/worker/worker.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/worker/bye.h"
#include "engine/worker/impl.h"
#include "wire/limits.h"

namespace motley::engine {
namespace {

using cluster::WorkerAction;
using cluster::WorkerReason;
namespace event = cluster::worker_event;

}  // namespace

// --- from decisions to frames ---

void Worker::Impl::decide(const cluster::WorkerEvent& happened, Time now) {
  cluster::WorkerActions actions;
  machine.decide(happened, now, actions);
  for (const WorkerAction& action : actions) perform(action, now);
}

void Worker::Impl::send(const wire::Message& message) {
  wire::FrameHeader header;
  header.type = wire::FrameType::control;
  header.run = run;
  header.fence = fence;
  output.send(wire::seal(header, wire::encode(message), checksums), Lane::control);
}

void Worker::Impl::perform(const WorkerAction& action, Time now) {
  const wire::Grant& lease = action.lease;
  switch (action.kind) {
    case WorkerAction::Kind::prepare:
      output.prepare(*spec, script_files);
      break;
    case WorkerAction::Kind::send_ready: {
      const auto entries = layout->entries();
      const plan::Affine known = known_speed.value_or(plan::Affine{});
      send(wire::Ready{{entries.begin(), entries.end()},
                       compared.train_fingerprint,
                       compared.test_fingerprint,
                       known.fixed,
                       known.per_sample,
                       wire_seconds,
                       compared.script,
                       compared.numbers});
      break;
    }
    case WorkerAction::Kind::send_synced:
      send(wire::Synced{action.version});
      break;
    case WorkerAction::Kind::send_refresh:
      send(wire::Refresh{action.version});
      break;
    case WorkerAction::Kind::send_heartbeat:
      send(wire::Heartbeat{static_cast<std::uint64_t>(now.count()), heartbeat_heard_ns, action.number});
      break;
    case WorkerAction::Kind::send_progress:
      send(wire::Progress{lease.pass, lease.lease, action.count, action.limit, action.trim});
      break;
    case WorkerAction::Kind::send_begin:
      send(report.begin(lease, action.count));
      break;
    case WorkerAction::Kind::send_finish:
      send_finish(action);
      break;
    case WorkerAction::Kind::send_failed:
      send(wire::Failed{lease.pass, lease.lease, failure});
      break;
    case WorkerAction::Kind::send_yield:
      send(wire::Yield{});
      break;
    case WorkerAction::Kind::send_bye:
      send(bye_of(action.reason, why));
      break;
    case WorkerAction::Kind::adopt:
      weights.adopt(action.version);
      break;
    case WorkerAction::Kind::forget_weights:
      weights.forget();
      break;
    case WorkerAction::Kind::start_task:
      start_task(action, now);
      break;
    case WorkerAction::Kind::limit_task:
      output.limit_task(action.number, action.count);
      break;
    case WorkerAction::Kind::finish_early:
      output.finish_early(action.number);
      break;
    case WorkerAction::Kind::step_done:
      output.step_done(action.version, action.count);
      break;
    case WorkerAction::Kind::disconnect:
      disconnect(action);
      break;
  }
}

void Worker::Impl::send_finish(const WorkerAction& action) {
  wire::Finish finish = report.finish(action.lease, action.count);
  if (action.count > 0) finish.residual = feedback.residual_ratio();
  gradients.report(finish);
  send(finish);
}

void Worker::Impl::start_task(const WorkerAction& action, Time now) {
  const wire::Grant& lease = action.lease;
  TaskOrder order;
  order.number = action.number;
  order.kind = static_cast<PassKind>(lease.pass >> 56);
  order.pass = lease.pass;
  order.lease = lease.lease;
  order.version = lease.version;
  order.epoch = lease.epoch;
  order.pass_first = lease.pass_first;
  order.first = lease.first;
  order.count = lease.count;
  order.limit = lease.limit;
  order.from_end = lease.from_end;
  order.local_steps = lease.local_steps;
  order.overlapped = lease.ahead;
  if (lease.local_steps > 0) order.spans = lease.spans;
  if (lease.local_steps > 0 && lease.spans.empty())
    order.spans = {{lease.epoch, lease.pass_first + lease.first, lease.count}};
  // The head changes the state only while no lease is live, so what the Grant named is still the newest.
  order.state = state.state();
  if (order.kind != PassKind::probe) order.weights = weights.weights(lease.version);
  arriving.reset();
  if (std::ranges::any_of(order.weights, &SharedBytes::empty)) arriving = {action.number, lease.version};
  report.started(order.weights.size(), now);
  output.start_task(std::move(order));
}

void Worker::Impl::disconnect(const WorkerAction& action) {
  const Error error = error_of_disconnect(action, std::exchange(why, std::nullopt), options.timeouts.silence);
  output.disconnect(action.reconnect, error);
}

void Worker::Impl::send_chunk(const wire::Grant& lease, ChunkId chunk, const SharedBytes& gradient, Time now) {
  wire::FrameHeader header;
  header.run = run;
  header.fence = fence;
  header.chunk = chunk;
  gradients.send(lease, header, layout->chunks()[chunk], gradient, checksums, now);
}

// --- the interface ---

Worker::Worker(const WorkerOptions& options, WorkerOutput& output) : impl_(std::make_unique<Impl>(options, output)) {}
Worker::~Worker() = default;

void Worker::connected(Time now, bool checksums) {
  Impl& w = *impl_;
  w.checksums = checksums;
  w.run = w.fence = w.heartbeat_heard_ns = 0;
  w.admitted = false;
  w.buffered_fence.reset();
  w.spec.reset();
  w.script_files = SharedBytes();
  w.blob.reset();
  w.weights.forget();
  w.state.reset();
  w.arriving.reset();
  w.layout.reset();
  w.why.reset();
  w.gradients.connected();
  w.decide(event::Connected{}, now);
}

void Worker::frame(const wire::Frame& frame, Time now) {
  Impl& w = *impl_;
  if (!w.machine.open()) return;
  if (w.admitted && frame.header.fence != w.fence) return;  // of an older session or incarnation
  switch (frame.header.type) {
    case wire::FrameType::control:
      w.on_control(frame, now);
      break;
    case wire::FrameType::weights:
      w.on_weights(frame, now);
      break;
    case wire::FrameType::blob:
      w.on_blob(frame, now);
      break;
    default:
      w.malformed({ErrorCode::protocol,
                   "a worker takes control, weights and blob frames; found type " +
                       std::to_string(static_cast<unsigned>(frame.header.type)),
                   "update motley on both machines to the same version"},
                  now);
  }
}

void Worker::disconnected(const std::string& why, Time now) {
  impl_->why = Error{ErrorCode::network, why, {}};
  impl_->decide(event::Disconnected{}, now);
}

void Worker::prepared(const Layout& layout, Compared compared, SampleCounts samples, std::optional<plan::Affine> speed,
                      Time now) {
  Impl& w = *impl_;
  if (w.machine.state() != cluster::WorkerState::loading || w.layout) return;
  w.layout = layout;
  w.weights.reset(*w.layout);
  w.compared = std::move(compared);
  w.samples = samples;
  w.known_speed = speed;
  w.decide(event::Prepared{}, now);
}

void Worker::knows_wire(const plan::EndCost& cost) { impl_->wire_seconds = plan::told(cost); }

void Worker::prepare_failed(const Error& error, Time now) {
  impl_->why = error;
  impl_->decide(event::PrepareFailed{}, now);
}

void Worker::device_out(const Error& error, Time now) {
  impl_->why = error;
  impl_->decide(event::DeviceOut{}, now);
}

void Worker::task_progress(std::uint64_t number, std::uint64_t done, Time now) {
  impl_->decide(event::TaskProgress{number, done}, now);
}

void Worker::task_limited(std::uint64_t number, std::uint64_t count, Time now) {
  impl_->decide(event::TaskLimited{number, count}, now);
}

void Worker::task_begin(std::uint64_t number, std::uint64_t count, const Begun& begun, Time now) {
  if (!impl_->machine.wanted(number)) return;
  impl_->report.begun(begun);
  impl_->decide(event::TaskBegun{number, count}, now);
}

void Worker::task_chunk(std::uint64_t number, ChunkId chunk, const SharedBytes& gradient, Time now) {
  Impl& w = *impl_;
  const wire::Grant* lease = w.machine.wanted(number);
  if (!lease) return;
  if (w.report.chunk(chunk, gradient)) w.send_chunk(*lease, chunk, gradient, now);
}

void Worker::task_finished(std::uint64_t number, const Outcome& outcome, double compute_seconds, double waited_seconds,
                           Time now) {
  Impl& w = *impl_;
  std::optional<wire::Grant> contributed;
  if (const wire::Grant* lease = w.machine.wanted(number)) {
    const bool train = static_cast<PassKind>(lease->pass >> 56) == PassKind::train;
    if (train && outcome.count > 0) contributed = *lease;
  }
  if (contributed && w.report.missing() > 0) {
    task_failed(number,
                {ErrorCode::internal,
                 "the computation ended with " + std::to_string(w.report.missing()) + " of " +
                     std::to_string(w.report.chunks()) + " chunks of its gradient missing",
                 {}},
                now);
    return;
  }
  w.report.finished(outcome, compute_seconds, waited_seconds, contributed.has_value(), now);
  const auto last_chunk = w.report.take_last_chunk();
  w.decide(event::TaskFinished{number, outcome.count}, now);
  if (contributed && last_chunk) w.send_chunk(*contributed, last_chunk->first, last_chunk->second, now);
}

void Worker::task_failed(std::uint64_t number, const Error& error, Time now) {
  impl_->failure = error.message.substr(0, wire::kStringBytesMax);
  impl_->report.failed(now);
  impl_->decide(event::TaskFailed{number}, now);
}

void Worker::delegate(DelegatedSteps order, DelegationEvents events) {
  impl_->delegated = std::move(events);
  impl_->output.make_steps(std::move(order));
}

void Worker::cut(std::uint64_t number) { impl_->output.end_steps(number); }

void Worker::delegated_step(DelegatedStep step, std::function<void()> taken, Time now) {
  impl_->report.made_step(step.samples, step.compute_seconds, now);
  impl_->delegated.step(std::move(step), std::move(taken));
}

void Worker::delegation_ended(DelegationEnd end) { impl_->delegated.ended(std::move(end)); }

void Worker::bytes_came(Time now) { impl_->decide(event::Heard{.weights = true}, now); }

void Worker::tick(Time now) { impl_->decide(event::Tick{}, now); }

void Worker::leave(Time now) { impl_->decide(event::LeaveAsked{}, now); }
void Worker::step_aside(Time now) { impl_->decide(event::LeaveAsked{.for_good = false}, now); }

cluster::WorkerState Worker::state() const { return impl_->machine.state(); }

std::optional<plan::Affine> Worker::speed() const { return impl_->report.speed(); }

}  // namespace motley::engine
