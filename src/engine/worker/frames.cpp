// From frames to events.

#include <utility>

#include "cluster/fence.h"
#include "engine/worker/bye.h"
#include "engine/worker/grant_check.h"
#include "engine/worker/impl.h"

namespace motley::engine {
namespace {

namespace event = cluster::worker_event;

}  // namespace

void Worker::Impl::malformed(Error error, Time now) {
  why = std::move(error);
  decide(event::Malformed{}, now);
}

void Worker::Impl::on_control(const wire::Frame& frame, Time now) {
  Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) {
    malformed(std::move(message).error(), now);
    return;
  }
  if (run == 0) run = frame.header.run;
  on_message(*message, now);
}

void Worker::Impl::on_message(const wire::Message& message, Time now) {
  decide(event::Heard{}, now);
  if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&message)) {
    heartbeat_heard_ns = heartbeat->sent_ns;
  } else if (const auto* new_spec = std::get_if<wire::RunSpec>(&message)) {
    on_spec(*new_spec, now);
  } else if (const auto* ticket = std::get_if<wire::Admitted>(&message)) {
    if (admitted || !layout) return;
    admitted = true;
    fence = ticket->fence;
    feedback.admitted(run, cluster::Fence::unpack(fence).incarnation);
    if (buffered_fence && *buffered_fence != fence) drop_buffered(now);
    output.admitted(ticket->worker);
    decide(event::Admitted{}, now);
  } else if (const auto* pass = std::get_if<wire::PassOpened>(&message)) {
    decide(*pass, now);
  } else if (const auto* closed = std::get_if<wire::PassClosed>(&message)) {
    decide(*closed, now);
  } else if (const auto* grant = std::get_if<wire::Grant>(&message)) {
    if (Status sound = check_grant(*grant, samples); !sound) return malformed(std::move(sound).error(), now);
    // Of a calibration the time counts, and a probe is compared with others of the same state, if it says anything.
    const auto kind = static_cast<PassKind>(grant->pass >> 56);
    const bool counts = kind == PassKind::train || kind == PassKind::evaluate;
    if (counts && grant->state != state.state().number) {
      malformed({ErrorCode::protocol,
                 "a lease needs state " + std::to_string(grant->state) + " of the loss, and " +
                     std::to_string(state.state().number) + " is here",
                 "update motley on both machines to the same version"},
                now);
      return;
    }
    decide(*grant, now);
  } else if (const auto* trim = std::get_if<wire::Trim>(&message)) {
    decide(*trim, now);
  } else if (const auto* cancel = std::get_if<wire::Cancel>(&message)) {
    decide(*cancel, now);
  } else if (const auto* bye = std::get_if<wire::Bye>(&message)) {
    why = error_of_bye(*bye);
    decide(*bye, now);
  } else if (const auto* taken = std::get_if<wire::Taken>(&message)) {
    gradients.taken(*taken, now);
  } else if (const auto* piece = std::get_if<wire::State>(&message)) {
    if (Status added = state.add(*piece); !added) malformed(std::move(added).error(), now);
  }
}

void Worker::Impl::on_spec(const wire::RunSpec& new_spec, Time now) {
  if (spec) return;
  if (Status checked = blob.expect(new_spec.script_bytes); !checked) {
    malformed(std::move(checked).error(), now);
    return;
  }
  spec = new_spec;
  offer_spec(now);
}

void Worker::Impl::offer_spec(Time now) {
  if (!spec) return;
  if (std::optional<SharedBytes> files = blob.take()) {
    script_files = std::move(*files);
    decide(event::SpecWhole{}, now);
  }
}

void Worker::Impl::on_blob(const wire::Frame& frame, Time now) {
  decide(event::Heard{}, now);
  if (Status added = blob.add(frame); !added) {
    malformed(std::move(added).error(), now);
    return;
  }
  offer_spec(now);
}

void Worker::Impl::drop_buffered(Time now) {
  weights.forget();
  decide(event::WeightsForgotten{}, now);
}

void Worker::Impl::on_weights(const wire::Frame& frame, Time now) {
  decide(event::Heard{.weights = true}, now);
  if (!layout) return;  // nothing was admitted yet: of another session
  if (!admitted) {
    // The data connection may overtake Admitted on the control connection.
    if (buffered_fence && *buffered_fence != frame.header.fence) drop_buffered(now);
    buffered_fence = frame.header.fence;
  }
  if (Status checked = weights.check(frame); !checked) {
    malformed(std::move(checked).error(), now);
    return;
  }
  const std::uint64_t version = frame.header.version;
  if (!weights.knows(version)) decide(event::VersionSeen{version}, now);
  const Result<WeightsAssembler::Added> added = weights.add(frame);
  if (!added) return malformed(added.error(), now);
  const bool whole = *added == WeightsAssembler::Added::whole;
  if ((whole || *added == WeightsAssembler::Added::chunk) && arriving && arriving->version == version)
    output.weights_arrived(arriving->task, frame.header.chunk, weights.weights(version, frame.header.chunk));
  if (whole) decide(event::VersionWhole{version}, now);
  if (*added == WeightsAssembler::Added::differs) decide(event::WeightsDiffer{version}, now);
}

}  // namespace motley::engine
