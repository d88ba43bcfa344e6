#include "engine/head/outbox.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "compute/probe.h"
#include "modes/rounds/round_plan.h"
#include "wire/limits.h"

namespace motley::engine {

using modes::ReasonCode;

namespace {

static_assert(modes::kLeasePiecesMax <= wire::kSpansMax);

/// The first 64 bits of a hash in hexadecimal.
std::uint64_t hash_prefix(const std::string& hex) {
  std::uint64_t prefix = 0;
  std::from_chars(hex.data(), hex.data() + std::min<std::size_t>(hex.size(), 16), prefix, 16);
  return prefix;
}

wire::Bye bye_for(ReasonCode code, const std::string& reason, bool failed) {
  switch (code) {
    case ReasonCode::run_over:
    case ReasonCode::stopped:
      if (failed) return {"diverged", {}, "a loss or gradient that is not finite", {}};
      if (code == ReasonCode::run_over) return {"done", {}, {}, {}};
      return {"lost", {}, "the coordinator was stopped; its run can be resumed", {}};
    case ReasonCode::left:
    case ReasonCode::yielded:
      return {"leave", {}, {}, {}};
    case ReasonCode::full:
      return {"full", "at most " + std::to_string(wire::kSessionsMax) + " workers", "one more",
              "try again when another worker has left"};
    case ReasonCode::excluded:
      return {"excluded", {}, reason, "check the memory and the drivers of this device"};
    case ReasonCode::otherwise:
      return {"excluded",
              {},
              reason,
              "motley join TOKEN --fetch, if the script may be another one here; else check the memory and the drivers "
              "of this device"};
    default:
      return {"lost", {}, reason, {}};
  }
}

// It wants the files of the run's script, and is no worker.
bool fetches(const Session& session) {
  return std::ranges::find(session.hello.features, kFetch) != session.hello.features.end();
}

}  // namespace

void Outbox::send_spec(const Session& session) {
  const CoordinatorOptions& options = parts_.options;
  const SharedBytes files = fetches(session) ? options.script_files : SharedBytes();
  const std::string sha256 = fetches(session) ? options.script_sha256 : std::string();
  const std::size_t total = files.size();
  parts_.sessions.say(session, wire::RunSpec{options.config, sha256, total});
  wire::FrameHeader header;
  header.type = wire::FrameType::blob;
  header.total = static_cast<std::uint32_t>(total);
  header.subject = hash_prefix(sha256);
  for (std::size_t offset = 0; offset < total; offset += wire::kSegmentBytesMax) {
    header.offset = static_cast<std::uint32_t>(offset);
    const std::size_t count = std::min(wire::kSegmentBytesMax, total - offset);
    parts_.sessions.send(session, header, files.slice(offset, count), Lane::background);
  }
}

void Outbox::tell(const modes::Action& action, Membership event) {
  parts_.sessions.tell(parts_.sessions.at(action.session), event, parts_.workers.sentence(action.reason));
}

void Outbox::admit(const modes::Action& action) {
  Session& session = parts_.sessions.at(action.session);
  parts_.sessions.say(session, wire::Admitted{session.worker, action.fence});
  session.fence = action.fence;
  parts_.state.send(session);
  KnownWorker& worker = parts_.workers.at(session.worker);
  parts_.sessions.tell(session, worker.seen ? Membership::readmitted : Membership::joined,
                       worker.seen ? "it came back" : "model and data are the same");
  worker.seen = true;
  // Its connection may have broken before it came: without, error feedback would add a second time what counted.
  if (worker.taken) parts_.sessions.say(session, *worker.taken);
}

void Outbox::report_closed(const Session& session, const modes::Action& action, const std::string& reason) {
  const bool admitted = session.admitted();
  if (!admitted && fetches(session)) return;
  switch (action.reason.code) {
    case ReasonCode::run_over:
    case ReasonCode::stopped:
      return;
    case ReasonCode::left:
    case ReasonCode::yielded:
      if (admitted) parts_.sessions.tell(session, Membership::left, reason);
      return;
    case ReasonCode::excluded:
    case ReasonCode::otherwise:
      parts_.workers.at(session.worker).excluded = true;
      return parts_.sessions.tell(session, admitted ? Membership::excluded : Membership::refused, reason);
    default:
      return parts_.sessions.tell(session, admitted ? Membership::lost : Membership::refused, reason);
  }
}

void Outbox::close_session(const modes::Action& action, bool failed) {
  const Session session = parts_.sessions.take(action.session);
  const std::string reason = session.why.empty() ? parts_.workers.sentence(action.reason) : session.why;
  if (!session.gone) {
    const wire::Bye bye = session.bye ? *session.bye : bye_for(action.reason.code, reason, failed);
    if (!session.said_bye) parts_.sessions.say(session, bye);
    parts_.output.close(session.id, bye);
  }
  report_closed(session, action, reason);
}

void Outbox::send_heartbeat(const modes::Action& action, Time now) {
  const Session& to = parts_.sessions.at(action.session);
  parts_.sessions.say(to, wire::Heartbeat{static_cast<std::uint64_t>(now.count()), to.heartbeat_heard_ns, 0});
}

void Outbox::send_weights(const modes::Action& action, Time now) {
  const fleet::Member* member = parts_.roster.find(action.session);
  const bool outside = member != nullptr && member->state != fleet::MemberState::member;
  Session& to = parts_.sessions.at(action.session);
  // Or a worker on a slow link that asks again and again would have a copy queued each time.
  to.weights_due = outside && action.urgent && parts_.output.queued_bytes(to.id) > 0;
  if (!to.weights_due) parts_.weights.send(to, action.urgent, outside, now);
}

void Outbox::send_due_weights(Time now) {
  for (const fleet::Member& member : parts_.roster.all()) {
    Session& to = parts_.sessions.at(member.session);
    if (!to.weights_due || parts_.output.queued_bytes(to.id) > 0) continue;
    to.weights_due = false;
    // Else a copy that it was sent before came whole after all.
    if (member.state == fleet::MemberState::syncing) parts_.weights.send(to, true, true, now);
  }
}

void Outbox::send_pass(const modes::Action& action) {
  parts_.sessions.say(parts_.sessions.at(action.session),
                      wire::PassOpened{action.pass.pack(), action.version, action.positions.epoch,
                                       action.positions.order_first, action.positions.count});
}

void Outbox::close_pass(const modes::Action& action, std::uint64_t version) {
  const wire::PassClosed closed{action.pass.pack(), version};
  for (const fleet::Member& member : parts_.roster.all())
    if (member.streams) parts_.sessions.say(parts_.sessions.at(member.session), closed);
}

void Outbox::send_calibration(const modes::Action& action, Time now) {
  ask(action, now,
      wire::Grant{.pass = action.pass.pack(),
                  .lease = action.lease,
                  .version = action.version,
                  .first = action.range.first,
                  .count = action.range.count,
                  .state = parts_.state.state().number});
}

void Outbox::send_probe(const modes::Action& action, Time now) {
  ask(action, now,
      wire::Grant{.pass = action.pass.pack(),
                  .lease = action.lease,
                  .count = std::min(compute::kProbeSamples, parts_.options.train_samples),
                  .state = parts_.state.state().number});
}

void Outbox::send_background_evaluation(const modes::Action& action, Time now) {
  send_pass(action);
  ask(action, now,
      wire::Grant{.pass = action.pass.pack(),
                  .lease = action.lease,
                  .version = action.version,
                  .epoch = action.positions.epoch,
                  .count = action.range.count,
                  .state = parts_.state.state().number});
}

void Outbox::send_trim(const modes::Action& action) {
  parts_.sessions.say(parts_.sessions.at(action.session),
                      wire::Trim{action.pass.pack(), action.lease, action.range.count, action.number});
}

void Outbox::send_cancel(const modes::Action& action) {
  parts_.sessions.say(parts_.sessions.at(action.session), wire::Cancel{action.pass.pack(), action.lease});
}

wire::CodecId Outbox::codec_of(const modes::Action& lease) const {
  if (parts_.sessions.at(lease.session).local() || lease.pass.kind != PassKind::train) return wire::CodecId::fp32;
  const wire::CodecId codec = parts_.options.gradients.value_or(parts_.performance.codec(lease.worker));
  return lease.first_of_pass || codec == wire::CodecId::fp32 ? codec : wire::CodecId::bf16;
}

bool Outbox::has_feedback(const modes::Action& lease) const {
  return lease.first_of_pass && codec_of(lease) != wire::CodecId::fp32;
}

void Outbox::send_taken(const modes::Action& action) {
  wire::Taken taken{action.pass.pack(), action.lease, {}};
  // As its grant said: meanwhile its codec may be another one.
  const Asked::Lease* asked = parts_.sessions.at(action.session).asked.find(action.lease);
  if (asked != nullptr ? action.first_of_pass && asked->feedback : has_feedback(action)) {
    for (const ChunkId chunk : action.discarded) {
      taken.discarded.resize(chunk / 8 + 1);
      taken.discarded.back() = static_cast<std::uint8_t>(taken.discarded.back() | 1U << chunk % 8);
    }
    parts_.workers.at(action.worker).taken = taken;
  }
  parts_.sessions.say(parts_.sessions.at(action.session), taken);
}

void Outbox::send_grant(const modes::Action& action, Time now) {
  const bool meets = action.ceiling != action.range;
  ask(action, now,
      wire::Grant{.pass = action.pass.pack(),
                  .lease = action.lease,
                  .version = action.version,
                  .epoch = action.positions.epoch,
                  .pass_first = action.positions.order_first,
                  .first = action.ceiling.first,
                  .count = action.ceiling.count,
                  .limit = meets ? action.range.count : 0,
                  .from_end = action.ceiling.first < action.range.first,
                  .codec = static_cast<std::uint32_t>(codec_of(action)),
                  .feedback = has_feedback(action),
                  .state = parts_.state.state().number,
                  .local_steps = action.local_steps,
                  .spans = action.spans,
                  .ahead = action.overlapped});
}

void Outbox::ask(const modes::Action& action, Time now, const wire::Grant& grant) {
  Session& session = parts_.sessions.at(action.session);
  session.asked.add({grant.lease, grant.pass, grant.count, now, grant.feedback});
  parts_.sessions.say(session, grant);
}

}  // namespace motley::engine
