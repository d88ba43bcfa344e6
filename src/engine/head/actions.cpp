// What the machine wants done, done.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/head/impl.h"

namespace motley::engine {

using modes::ActionKind;

void Coordinator::Impl::perform(const modes::Action& action) {
  switch (action.kind) {
    case ActionKind::admit:
      return outbox.admit(action);
    case ActionKind::send_weights:
      return outbox.send_weights(action, now);
    case ActionKind::send_next:
      return weights.send_next(sessions.at(action.session));
    case ActionKind::close_session:
      if (const fleet::WorkerId worker = sessions.at(action.session).worker; worker != 0) performance.left(worker);
      return outbox.close_session(action, failed);
    case ActionKind::open_pass:
      if (action.pass.kind == PassKind::train) choose_place();
      return outbox.send_pass(action);
    case ActionKind::grant:
      return outbox.send_grant(action, now);
    case ActionKind::trim:
      return outbox.send_trim(action);
    case ActionKind::calibrate:
    case ActionKind::probe:
    case ActionKind::compare_probes:
    case ActionKind::park:
    case ActionKind::take_in:
    case ActionKind::evaluate_in_background:
    case ActionKind::compare_background:
      return perform_in_background(action);
    case ActionKind::cancel_background:
    case ActionKind::cancel:
      return outbox.send_cancel(action);
    case ActionKind::taken:
      return outbox.send_taken(action);
    case ActionKind::measured:
      workers.at(action.worker).finish_seconds = seconds(action.elapsed);
      return performance.elapsed(action.pass.kind, action.worker, action.lease, action.range.count, action.elapsed);
    case ActionKind::late:
      return measure_late(action);
    case ActionKind::sketch:
      return sketch(action.lease);
    case ActionKind::abandon:
      return uploads.abandon(action.lease, machine.coverage());
    case ActionKind::release:
      return uploads.release(action.lease, action.chunk);
    case ActionKind::reduce:
      reduce(action.chunk);
      return;
    case ActionKind::finish_chunk:
      return finish_chunk(action.chunk);
    case ActionKind::finish_all:
      return finish_all(action.chunk);
    case ActionKind::close_step:
      if (!failed) close_step(action);
      return;
    case ActionKind::close_evaluation:
      return close_evaluation(action);
    case ActionKind::delegate:
    case ActionKind::pause:
      return perform_here(action);
    case ActionKind::cut:
      return output.cut(action.session, action.lease);
    case ActionKind::heartbeat:
      return outbox.send_heartbeat(action, now);
    case ActionKind::warn:
      return output.warning(workers.sentence(action.reason));
    case ActionKind::diverged:
      return diverged(action);
    case ActionKind::finished:
      return finish();
  }
}

void Coordinator::Impl::finish() {
  uploads.clear();
  sketches.clear();
  if (!failed) output.finished();
}

/// What is done with the optimizer's state, on the host.
void Coordinator::Impl::perform_here(const modes::Action& action) {
  if (action.kind == ActionKind::delegate) {
    if (here(on_device.offload())) delegator.delegate(action, state.state(), now);
  } else if (here(on_device.download_state())) {
    output.paused(action.version, action.urgent);
  }
}

/// What is done beside the open pass.
void Coordinator::Impl::perform_in_background(const modes::Action& action) {
  switch (action.kind) {
    case ActionKind::calibrate:
      return outbox.send_calibration(action, now);
    case ActionKind::probe:
      return outbox.send_probe(action, now);
    case ActionKind::compare_probes:
      return compare_probes(action);
    case ActionKind::park:
      return outbox.tell(action, Membership::parked);
    case ActionKind::take_in:
      return outbox.tell(action, Membership::readmitted);
    case ActionKind::evaluate_in_background:
      evaluations.begin_background(action.version, weights.held_exactly());
      return outbox.send_background_evaluation(action, now);
    case ActionKind::compare_background:
      return compare_background(action.worker);
    default:
      MOTLEY_ASSERT(false);
  }
}

void Coordinator::Impl::compare_probes(const modes::Action& action) {
  const fleet::WorkerId worker = action.worker, reference = action.number;
  const Probes::Compared found = probes.compare(worker, reference, server.layout());
  if (!found.text.empty()) {
    const auto described = [this](fleet::WorkerId id) {
      const Session* session = sessions.named(workers.name(id));
      return workers.name(id) + " is " + (session == nullptr ? "gone" : session->hello.device_description);
    };
    output.warning(
        workers.name(worker) + " makes another gradient of the same samples and weights than " +
        workers.name(reference) + ": " + found.text +
        "; one of the two has another script, other data, another version of a library, or a faulty device; " +
        described(worker) + ", " + described(reference));
  }
  feed(modes::ProbesCompared{worker, reference, found.verdict});
}

void Coordinator::Impl::compare_background(fleet::WorkerId worker) {
  const std::string difference = evaluations.difference();
  if (!difference.empty()) {
    output.warning(workers.name(worker) + " evaluates the same weights to " + difference +
                   "; it evaluates alone no more; it or one of the others has other test data, another version of a "
                   "library, or a faulty device");
  }
  feed(modes::BackgroundCompared{worker, difference.empty()});
}

void Coordinator::Impl::sketch(modes::LeaseId lease) {
  for (ChunkId chunk = 0; chunk < server.layout().chunks().size(); ++chunk) {
    const Chunk& each = server.layout().chunks()[chunk];
    if (uploads.has(lease, chunk)) sketches.add(lease, chunk, each.kind, uploads.encoded(lease, chunk, each.elements));
  }
}

void Coordinator::Impl::measure_late(const modes::Action& action) {
  const fleet::Member* member = machine.members().find(action.session);
  if (member == nullptr || !lives(*member, options.timeouts, now)) return;
  const Session& session = sessions.at(action.session);
  const bool computed = action.number == action.range.count;
  const bool computes = !computed && (action.number > 0 || session.computes);
  const Time granted = now - action.elapsed;
  if (action.number == 0 && session.heartbeat_at <= granted) return;  // it did not say what it does
  const std::uint64_t unit = performance.unit(action.worker);
  const std::uint64_t samples =
      computes && unit > 0 ? std::min(action.range.count, action.number + unit) : action.range.count;
  performance.late(action.worker, action.lease, samples, action.elapsed, computes);
}

// True as soon as the sum is there: on a device that is after the last chunk, for all of them.
bool Coordinator::Impl::reduce(ChunkId chunk) {
  if (options.rate_by_workers) steps.rate_by_workers(machine, workers, chunk);
  steps.reduce(chunk, machine.coverage(), noise.norms());
  return on_device.device() == nullptr || (on_device.all_collected() && make_on_device());
}

void Coordinator::Impl::finish_chunk(ChunkId chunk) {
  const bool there = on_device.device() != nullptr;
  if (!reduce(chunk)) return;
  if (there) return publish_all(0);
  weights.publish(chunk, server.apply(chunk));
}

void Coordinator::Impl::finish_all(ChunkId first) {
  if (failed) return;
  if (on_device.device() == nullptr) {
    if (const Status done = server.close_gradient(); !done) {
      failed = true;
      return output.failed(done.error());
    }
  }
  publish_all(first);
}

void Coordinator::Impl::publish_all(ChunkId first) {
  const bool there = on_device.device() != nullptr;
  const std::size_t chunks = server.layout().chunks().size();
  for (std::size_t i = 0; i < chunks; ++i) {
    const ChunkId chunk = static_cast<ChunkId>((first + i) % chunks);
    weights.publish(chunk, there ? server.weights(chunk) : server.apply(chunk));
  }
}

void Coordinator::Impl::close_step(const modes::Action& action) {
  StepClosed step = steps.describe(machine, workers, now);
  if (options.local_steps == 0) {
    noise.close_step(step.samples);
  } else {
    step.drift = noise.norms().cosine();
    noise.drop_step();  // what rounds come to says nothing of the noise of gradients
  }
  step.noise = noise.known();
  if (on_device.device() == nullptr) server.finish_step();
  MOTLEY_ASSERT(server.version() == step.step + 1);
  weights.advance();
  uploads.clear();
  sketches.clear();
  outbox.close_pass(action, server.version());
  performance.closed(step.duration);
  for (const fleet::Member& member : machine.members().all())
    if (member.share.samples > 0) performance.weigh_codec(member.worker);
  output.step_closed(step);
  feed(modes::PassFinished{});
}

void Coordinator::Impl::close_evaluation(const modes::Action& action) {
  const Evaluated result = evaluations.close(machine, weights.held_exactly());
  outbox.close_pass(action, action.version);
  output.evaluated(result);
  if (options.rates_follow_evaluations) {
    if (auto lr = output.rates_after(result); !lr.empty()) server.follow({machine.version(), std::move(lr)});
  }
  feed(modes::PassFinished{});
}

void Coordinator::Impl::diverged(const modes::Action& action) {
  failed = true;
  output.failed({ErrorCode::diverged,
                 "step " + std::to_string(action.version) +
                     " gives a gradient or loss that is not finite for positions " +
                     std::to_string(action.range.first) + " to " + std::to_string(action.range.end() - 1) +
                     " of the batch, computed twice",
                 "lower optimizer.lr, set train.clip_norm, or look at these samples with motley audit --order"});
}

}  // namespace motley::engine
