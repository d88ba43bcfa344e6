// From the machine's actions to frames and reports.

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "engine/coordinator_impl.h"
#include "engine/loss_state.h"
#include "wire/limits.h"

namespace motley::engine {

using modes::ActionKind;
using modes::ReasonCode;

namespace {

/// The first 64 bits of a hash in hexadecimal.
std::uint64_t hash_prefix(const std::string& hex) {
  std::uint64_t prefix = 0;
  std::from_chars(hex.data(), hex.data() + std::min<std::size_t>(hex.size(), 16), prefix, 16);
  return prefix;
}

std::uint64_t evaluation_pass(std::uint64_t version) {
  return modes::PassId{.kind = PassKind::evaluate, .number = version}.pack();
}

}  // namespace

void Coordinator::Impl::perform(const modes::Action& action) {
  switch (action.kind) {
    case ActionKind::admit:
      return admit(action);
    case ActionKind::send_weights:
      return send_weights(action);
    case ActionKind::send_next:
      return send_next(action);
    case ActionKind::close_session:
      return close_session(action);
    case ActionKind::open_pass:
      return send_pass(action);
    case ActionKind::grant:
      return send_grant(action);
    case ActionKind::trim:
      return send_control(sessions.at(action.session),
                          wire::Trim{machine.pass()->id.pack(), action.lease, action.range.count, action.number});
    case ActionKind::calibrate:
      return send_calibration(action);
    case ActionKind::park:
      return tell(sessions.at(action.session), WorkerEvent::parked, sentence(action.reason));
    case ActionKind::take_in:
      return tell(sessions.at(action.session), WorkerEvent::readmitted, sentence(action.reason));
    case ActionKind::evaluate_aside:
      return send_evaluation_aside(action);
    case ActionKind::cancel_aside:
      return send_control(sessions.at(action.session), wire::Cancel{evaluation_pass(action.version), action.lease});
    case ActionKind::cancel:
      return send_control(sessions.at(action.session), wire::Cancel{machine.pass()->id.pack(), action.lease});
    case ActionKind::taken:
      return send_taken(action);
    case ActionKind::measured:
      workers[action.worker - 1].finish_seconds = seconds(action.elapsed);
      return pace.elapsed(machine.pass()->id.kind, action.worker, action.lease, action.range.count, action.elapsed);
    case ActionKind::late:
      return measure_late(action);
    case ActionKind::abandon:
      return uploads.abandon(action.lease, machine.coverage());
    case ActionKind::release:
      return uploads.release(action.lease, action.chunk);
    case ActionKind::reduce:
      return reduce(action.chunk);
    case ActionKind::clip:
      return clip();
    case ActionKind::apply:
      return apply(action.chunk);
    case ActionKind::close_step:
      return close_step();
    case ActionKind::close_evaluation:
      return close_evaluation();
    case ActionKind::lend:
      return lend(action);
    case ActionKind::cut:
      return output.cut(action.session, action.lease);
    case ActionKind::hold:
      return output.held(action.version, action.urgent);
    case ActionKind::heartbeat: {
      const Session& to = sessions.at(action.session);
      return send_control(to, wire::Heartbeat{static_cast<std::uint64_t>(now.count()), to.heartbeat_heard_ns, 0});
    }
    case ActionKind::warn:
      return output.warning(sentence(action.reason));
    case ActionKind::diverged:
      return diverged(action);
    case ActionKind::finished:
      uploads.clear();
      if (!failed) output.finished();
      return;
  }
}

void Coordinator::Impl::send_control(const Session& session, const wire::Message& message) {
  if (session.gone) return;
  wire::FrameHeader header;
  header.type = wire::FrameType::control;
  header.run = options.run;
  header.fence = session.fence;
  output.send(session.id, wire::seal(header, wire::encode(message), options.checksums && session.remote()),
              Lane::control);
}

void Coordinator::Impl::send_spec(const Session& session) {
  const bool fetches = std::ranges::find(session.hello.features, kFetch) != session.hello.features.end();
  const SharedBytes& file = fetches ? options.script_files : options.model_file;
  const std::string& sha256 = fetches ? options.script_sha256 : options.model_sha256;
  const std::size_t total = file.size();
  send_control(session, wire::RunSpec{options.config, sha256, total});
  wire::FrameHeader header;
  header.type = wire::FrameType::blob;
  header.run = options.run;
  header.total = static_cast<std::uint32_t>(total);
  header.subject = hash_prefix(sha256);
  for (std::size_t offset = 0; offset < total; offset += wire::kSegmentBytesMax) {
    header.offset = static_cast<std::uint32_t>(offset);
    const std::size_t count = std::min(wire::kSegmentBytesMax, total - offset);
    output.send(session.id, wire::seal(header, file.slice(offset, count), options.checksums && session.remote()),
                Lane::background);
  }
}

// Ahead of every Grant that needs it, and behind the end of every one before: control frames keep their order.
void Coordinator::Impl::send_state(const Session& session) {
  if (options.state.number == 0 || session.gone) return;
  if (state_pieces.empty()) state_pieces = pieces_of(options.state);
  wire::FrameHeader header;
  header.type = wire::FrameType::control;
  header.run = options.run;
  header.fence = session.fence;
  for (const SharedBytes& piece : state_pieces)
    output.send(session.id, wire::seal(header, piece, options.checksums && session.remote()), Lane::control);
}

void Coordinator::Impl::change_state(SharedBytes bytes) {
  options.state = {options.state.number + 1, std::move(bytes)};
  state_pieces.clear();
  for (const auto& [id, session] : sessions)
    if (session.fence != 0) send_state(session);
}

// --- joining and leaving ---

void Coordinator::Impl::tell(const Session& session, WorkerEvent event, const std::string& reason) {
  output.worker_changed({.session = session.id,
                         .worker = session.worker,
                         .name = session.name,
                         .machine = session.hello.machine,
                         .device = session.hello.device,
                         .description = session.hello.device_description,
                         .event = event,
                         .reason = reason});
}

void Coordinator::Impl::admit(const modes::Action& action) {
  Session& session = sessions.at(action.session);
  send_control(session, wire::Admitted{session.worker, action.fence});
  session.fence = action.fence;
  send_state(session);
  Worker& worker = workers[session.worker - 1];
  tell(session, worker.seen ? WorkerEvent::readmitted : WorkerEvent::joined,
       worker.seen ? "it came back" : "model and data are the same");
  worker.seen = true;
  // Its connection may have broken before it came: without, error feedback would add a second time what counted.
  if (worker.taken) send_control(session, *worker.taken);
}

wire::Bye Coordinator::Impl::bye_for(const modes::Action& action, const std::string& reason) const {
  switch (action.reason.code) {
    case ReasonCode::run_over:
      if (failed) return {"diverged", {}, "a loss or gradient that is not finite", {}};
      return {"done", {}, {}, {}};
    case ReasonCode::stopped:
      if (failed) return {"diverged", {}, "a loss or gradient that is not finite", {}};
      return {"lost", {}, "the coordinator was stopped; its run can be resumed", {}};
    case ReasonCode::left:
    case ReasonCode::yielded:
      return {"leave", {}, {}, {}};
    case ReasonCode::full:
      return {"full", "at most " + std::to_string(wire::kSessionsMax) + " workers", "one more",
              "try again when another worker has left"};
    case ReasonCode::excluded:
      return {"excluded", {}, reason, "check the memory and the drivers of this device"};
    default:
      return {"lost", {}, reason, {}};
  }
}

void Coordinator::Impl::report_closed(const Session& session, const modes::Action& action, const std::string& reason) {
  const bool admitted = session.fence != 0;
  switch (action.reason.code) {
    case ReasonCode::run_over:
    case ReasonCode::stopped:
      return;
    case ReasonCode::left:
    case ReasonCode::yielded:
      if (admitted) tell(session, WorkerEvent::left, reason);
      return;
    case ReasonCode::excluded:
      return tell(session, admitted ? WorkerEvent::excluded : WorkerEvent::refused, reason);
    default:
      return tell(session, admitted ? WorkerEvent::lost : WorkerEvent::refused, reason);
  }
}

void Coordinator::Impl::close_session(const modes::Action& action) {
  const auto at = sessions.find(action.session);
  MOTLEY_ASSERT(at != sessions.end());
  const Session session = std::move(at->second);
  sessions.erase(at);
  const std::string reason = session.why.empty() ? sentence(action.reason) : session.why;
  if (!session.gone) {
    const wire::Bye bye = session.bye ? *session.bye : bye_for(action, reason);
    if (!session.said_bye) send_control(session, bye);
    output.close(session.id, bye);
  }
  report_closed(session, action, reason);
}

// --- weights ---

std::size_t Coordinator::Impl::send_chunk(const Session& session, VersionFrames& frames, ChunkId chunk, Lane lane) {
  if (session.gone) return 0;
  std::size_t bytes = 0;
  wire::FrameHeader header;
  header.run = options.run;
  header.fence = session.fence;
  const VersionFrames::Reader reader{.local = session.local(),
                                     .checksum = options.checksums && session.remote(),
                                     .holds_before = session.holds && *session.holds + 1 == frames.version(),
                                     .background = lane == Lane::background};
  frames.each(chunk, header, reader, [&](wire::Frame frame) {
    bytes += frame.body.size();
    output.send(session.id, std::move(frame), lane);
  });
  return bytes;
}

void Coordinator::Impl::send_weights(const modes::Action& action) {
  Session& session = sessions.at(action.session);
  const fleet::Member* member = machine.members().find(action.session);
  const bool beside = member != nullptr && member->state != fleet::MemberState::member;
  std::size_t bytes = 0;
  for (ChunkId chunk = 0; chunk < server.layout().chunks().size(); ++chunk)
    bytes += send_chunk(session, current, chunk, action.urgent ? Lane::weights : Lane::background);
  session.weights_sent.reset();
  if (beside) session.weights_sent = {machine.version(), now, bytes};
  // What comes on the lane of weights may overtake the background.
  if (action.urgent) session.holds = current.version();
}

void Coordinator::Impl::publish(ChunkId chunk, const SharedBytes& exact) {
  const wire::CodecId codec =
      server.layout().chunks()[chunk].kind == ChunkKind::large ? weights_codec() : wire::CodecId::fp32;
  const auto moves = [&](const fleet::Member& member) {
    const Session& to = sessions.at(member.session);
    return member.streams && !to.local() && to.holds == current.version();
  };
  // While nobody needs a delta, what workers hold is exact.
  if (codec != wire::CodecId::fp32 && std::ranges::any_of(machine.members().all(), moves))
    return next.approach(chunk, exact, current.held(chunk), codec, pool);
  next.set(chunk, exact);
}

// All hold the same bits, so the slowest link decides.
wire::CodecId Coordinator::Impl::weights_codec() const {
  if (options.weights) return *options.weights;
  wire::CodecId least = wire::CodecId::fp32;
  for (const fleet::Member& member : machine.members().all())
    if (member.streams && !sessions.at(member.session).local()) least = std::max(least, pace.codec(member.worker));
  return least;
}

void Coordinator::Impl::send_next(const modes::Action& action) {
  const Session& session = sessions.at(action.session);
  for (ChunkId chunk = 0; chunk < server.layout().chunks().size(); ++chunk)
    if (next.has(chunk)) send_chunk(session, next, chunk, Lane::weights);
}

// --- passes ---

void Coordinator::Impl::send_pass(const modes::Action& action) {
  const auto& pass = *machine.pass();
  send_control(sessions.at(action.session), wire::PassOpened{pass.id.pack(), machine.version(), pass.range.epoch,
                                                             pass.range.order_first, pass.range.count});
}

void Coordinator::Impl::send_calibration(const modes::Action& action) {
  const modes::PassId pass{.kind = PassKind::calibrate, .number = action.version};
  send_control(sessions.at(action.session), wire::Grant{.pass = pass.pack(),
                                                        .lease = action.lease,
                                                        .version = action.version,
                                                        .first = action.range.first,
                                                        .count = action.range.count,
                                                        .state = options.state.number});
}

void Coordinator::Impl::send_evaluation_aside(const modes::Action& action) {
  const Session& session = sessions.at(action.session);
  const std::uint64_t pass = evaluation_pass(action.version);
  aside_exact = held_exactly();
  send_control(session, wire::PassOpened{pass, action.version, machine.aside()->epoch, 0, action.range.count});
  send_control(session, wire::Grant{.pass = pass,
                                    .lease = action.lease,
                                    .version = action.version,
                                    .epoch = machine.aside()->epoch,
                                    .count = action.range.count,
                                    .state = options.state.number});
}

wire::CodecId Coordinator::Impl::codec_of(const modes::Lease& lease) const {
  if (sessions.at(lease.session).local() || machine.pass()->id.kind != PassKind::train) return wire::CodecId::fp32;
  const wire::CodecId codec = options.gradients.value_or(pace.codec(lease.worker));
  return lease.first_of_pass || codec == wire::CodecId::fp32 ? codec : wire::CodecId::bf16;
}

bool Coordinator::Impl::has_feedback(const modes::Lease& lease) const {
  return lease.first_of_pass && codec_of(lease) != wire::CodecId::fp32;
}

void Coordinator::Impl::send_taken(const modes::Action& action) {
  wire::Taken taken{machine.pass()->id.pack(), action.lease, {}};
  const modes::Coverage& coverage = machine.coverage();
  const modes::Lease& lease = *machine.lease(action.lease);
  if (has_feedback(lease)) {
    for (ChunkId chunk = 0; chunk < coverage.chunks(); ++chunk) {
      if (coverage.accepted(action.lease, chunk)) continue;
      taken.discarded.resize(chunk / 8 + 1);
      taken.discarded.back() = static_cast<std::uint8_t>(taken.discarded.back() | 1U << chunk % 8);
    }
    workers[lease.worker - 1].taken = taken;
  }
  send_control(sessions.at(action.session), taken);
}

void Coordinator::Impl::send_grant(const modes::Action& action) {
  const auto& pass = *machine.pass();
  const modes::Lease& lease = *machine.lease(action.lease);
  const bool meets = action.ceiling != action.range;
  send_control(sessions.at(action.session), wire::Grant{.pass = pass.id.pack(),
                                                        .lease = action.lease,
                                                        .version = machine.version(),
                                                        .epoch = pass.range.epoch,
                                                        .pass_first = pass.range.order_first,
                                                        .first = action.ceiling.first,
                                                        .count = action.ceiling.count,
                                                        .limit = meets ? action.range.count : 0,
                                                        .from_end = action.ceiling.first < action.range.first,
                                                        .codec = static_cast<std::uint32_t>(codec_of(lease)),
                                                        .feedback = has_feedback(lease),
                                                        .state = options.state.number});
}

bool Coordinator::Impl::lives(const fleet::Member& member) const {
  return now - member.heard < kMissedHeartbeats * options.timeouts.heartbeat;
}

void Coordinator::Impl::measure_late(const modes::Action& action) {
  const fleet::Member* member = machine.members().find(action.session);
  if (member == nullptr || !lives(*member)) return;
  const Session& session = sessions.at(action.session);
  const bool computed = action.number == action.range.count;
  const bool computes = !computed && (action.number > 0 || session.computes);
  const Time granted = now - action.elapsed;
  if (action.number == 0 && session.heartbeat_at <= granted) return;  // it did not say what it does
  const std::uint64_t unit = pace.unit(action.worker);
  const std::uint64_t samples =
      computes && unit > 0 ? std::min(action.range.count, action.number + unit) : action.range.count;
  pace.late(action.worker, action.lease, samples, action.elapsed, computes);
}

}  // namespace motley::engine
