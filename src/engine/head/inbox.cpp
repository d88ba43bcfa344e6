#include "engine/head/inbox.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "compute/device_care.h"
#include "engine/head/contribution.h"
#include "modes/work/pass.h"
#include "wire/fingerprint.h"
#include "wire/limits.h"
#include "wire/script.h"

namespace motley::engine {
namespace {

// Seconds that a device may take for a sample, or for starting a pass; what claims to be outside is measured.
constexpr double kSpeedMin = 1e-9;
constexpr double kSpeedMax = 1e4;

// Of a worker that was silent for so many nothing is learned, and if it comes back under the same name its old channel
// is dead.
constexpr int kMissedHeartbeats = 2;

std::string range_text(std::uint64_t first, std::uint64_t count) {
  return std::to_string(count) + " positions from " + std::to_string(first);
}

bool is_calibration(std::uint64_t pass) { return modes::PassId::unpack(pass).kind == PassKind::calibrate; }
bool is_probe(std::uint64_t pass) { return modes::PassId::unpack(pass).kind == PassKind::probe; }

std::string describe(const wire::Bye& bye) {
  std::string text = bye.found.empty() ? "it said " + bye.code : bye.found;
  if (!bye.expected.empty()) text += ", expected " + bye.expected;
  if (!bye.hint.empty()) text += " (" + bye.hint + ")";
  return text;
}

}  // namespace

bool lives(const fleet::Member& member, const Timeouts& timeouts, Time now) noexcept {
  return now - member.heard < kMissedHeartbeats * timeouts.heartbeat;
}

void Inbox::on_frame(Session& session, const wire::Frame& frame, Time now) {
  now_ = now;
  const wire::FrameHeader& header = frame.header;
  // A worker learns the run's number from the first frame it gets; what it sent before may come late, with the old
  // fence.
  const std::uint64_t run = parts_.options.run;
  const bool of_this_run = header.run == run;
  if (!of_this_run && (header.run != 0 || (session.admitted() && header.fence == session.fence)))
    return violation(session, "frames of run " + std::to_string(run), "run " + std::to_string(header.run));
  if (header.fence != session.fence) return;
  switch (header.type) {
    case wire::FrameType::control: {
      if (session.admitted() && frame.body.size() > wire::kAdmittedControlBytesMax) {  // not worth reading
        return violation(session,
                         "at most " + std::to_string(wire::kAdmittedControlBytesMax) + " bytes of control message",
                         std::to_string(frame.body.size()));
      }
      const Result<wire::Message> message = wire::decode(frame.body.bytes());
      return message ? on_message(session, *message) : violation(session, "a control message", message.error().message);
    }
    case wire::FrameType::gradient:
    case wire::FrameType::statistic:
      return on_gradient(session, frame);
    default:
      return violation(session, "control, gradient or statistic frames",
                       "type " + std::to_string(static_cast<unsigned>(header.type)));
  }
}

void Inbox::end_session(Session& session, wire::Bye bye, std::string why) {
  session.bye = std::move(bye);
  session.why = std::move(why);
  feed_(modes::SessionEnded{session.id, false});
}

void Inbox::violation(Session& session, std::string expected, std::string found) {
  std::string why = "it broke the protocol: expected " + expected + ", found " + found;
  wire::Bye bye{"protocol", std::move(expected), std::move(found),
                "install the same version of motley on both machines"};
  end_session(session, std::move(bye), std::move(why));
}

// --- gradients ---

const modes::Lease* Inbox::live_lease(const Session& session, std::uint64_t pass, std::uint64_t lease) const {
  if (!parts_.machine.pass() || parts_.machine.pass()->id.pack() != pass) return nullptr;
  const modes::Lease* found = parts_.machine.lease(lease);
  return found != nullptr && found->session == session.id && found->live() ? found : nullptr;
}

bool Inbox::is_background(const Session& session, modes::LeaseId lease) const {
  const auto& background = parts_.machine.background();
  return background && background->session == session.id && background->lease == lease;
}

void Inbox::on_gradient(Session& session, const wire::Frame& frame) {
  if (!session.admitted()) return;
  const wire::FrameHeader& header = frame.header;
  if (auto fault = contribution_fault(header, frame.body.size(), parts_.server.layout(), parts_.options.gradients))
    return violation(session, std::move(fault->expected), std::move(fault->found));
  const modes::Lease* lease = live_lease(session, header.pass, header.subject);
  const modes::PassId pass = modes::PassId::unpack(header.pass);
  if (lease == nullptr || pass.kind != PassKind::train) return;
  if (header.version != pass.number) {
    return violation(session, "a gradient at version " + std::to_string(pass.number),
                     "version " + std::to_string(header.version));
  }
  if (lease->chunks[header.chunk] != modes::Lease::ChunkState::awaited) return;
  if (!parts_.uploads.fits(lease->id, header)) return violation(session, "segments of one codec", "segments of two");
  if (!parts_.uploads.add(lease->id, frame)) return;
  const Chunk& chunk = parts_.server.layout().chunks()[header.chunk];
  const OnDevice* on_device = frame.body.on_device();
  const bool looked_at = lease->doubt.withheld || lease->doubt.compared;
  DeviceServer* const device = parts_.on_device.device();
  const bool lost = on_device != nullptr && device == nullptr;
  Result<SharedBytes> fetched{SharedBytes()};
  if (on_device != nullptr && looked_at && !lost) fetched = device->fetch(frame.body);
  // The server left the device meanwhile: it is computed again.
  if (lost || !fetched) return feed_(modes::LeaseFailed{session.id, lease->id});
  std::optional<codec::Encoded> values;
  if (on_device == nullptr) {
    values = parts_.uploads.encoded(lease->id, header.chunk, chunk.elements);
  } else if (looked_at) {
    values = codec::Encoded(fetched->floats());
  }
  const double largest = values ? values->largest() : on_device->largest;
  const bool statistic = chunk.kind == ChunkKind::statistics;
  if (looked_at && values) parts_.sketches.add(lease->id, header.chunk, chunk.kind, *values);
  feed_(modes::ChunkArrived{session.id,
                            lease->id,
                            header.chunk,
                            {.gradient = statistic ? 0 : largest, .statistic = statistic ? largest : 0},
                            unlike(*lease, header.chunk),
                            values ? bearing(header.chunk, *values) : std::nullopt,
                            header.codec > wire::CodecId::bf16});
}

std::optional<modes::Bearing> Inbox::bearing(ChunkId chunk, const codec::Encoded& values) const {
  if (parts_.options.verify.part <= 0 || parts_.options.local_steps > 0 || chunk != pointing_) return {};
  return bearing_of(parts_.options.verify.secret, chunk, values);
}

std::uint32_t Inbox::unlike(const modes::Lease& lease, ChunkId chunk) const {
  std::uint32_t found = 0;
  const auto claims = parts_.machine.claims();
  for (std::size_t i = 0; lease.doubt.compared && i < claims.size(); ++i)
    if (claims[i].range == lease.range && parts_.sketches.differ(claims[i].lease, lease.id, chunk)) found |= 1U << i;
  return found;
}

// --- control ---

void Inbox::on_message(Session& session, const wire::Message& message) {
  const bool admitted = session.admitted();
  if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&message)) {
    session.heartbeat_heard_ns = heartbeat->sent_ns;
    session.heartbeat_at = now_;
    session.computes = heartbeat->lease != 0;
  } else if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    if (admitted) return violation(session, "one Ready of a session", "another one");
    on_ready(session, *ready);
  } else if (const auto* bye = std::get_if<wire::Bye>(&message)) {
    on_bye(session, *bye);
  } else if (!admitted) {
    return;
  } else if (const auto* begin = std::get_if<wire::Begin>(&message)) {
    on_begin(session, *begin);
  } else if (const auto* progress = std::get_if<wire::Progress>(&message)) {
    if (live_lease(session, progress->pass, progress->lease) == nullptr) return;
    feed_(modes::LeaseProgress{session.id, progress->lease, progress->done, progress->limit, progress->trim});
  } else if (const auto* finish = std::get_if<wire::Finish>(&message)) {
    on_finish(session, *finish);
  } else if (const auto* failure = std::get_if<wire::Failed>(&message)) {
    on_failed(session, *failure);
  } else if (const auto* synced = std::get_if<wire::Synced>(&message)) {
    on_synced(session, *synced);
  } else if (const auto* refresh = std::get_if<wire::Refresh>(&message)) {
    on_refresh(session, *refresh);
  } else if (std::holds_alternative<wire::Yield>(message)) {
    feed_(modes::WorkerYields{session.id});
  } else {
    violation(session, "a message of a worker", std::string(wire::name_of(message)));
  }
}

void Inbox::on_failed(Session& session, const wire::Failed& failure) {
  if (is_background(session, failure.lease)) return feed_(modes::BackgroundEvaluated{session.id, failure.lease, false});
  if (is_probe(failure.pass)) return feed_(modes::Probed{session.id, failure.lease, false});
  const bool calibration = is_calibration(failure.pass);
  const bool overlapped = parts_.machine.is_overlapped(session.id, failure.lease);
  if (!calibration && !overlapped && live_lease(session, failure.pass, failure.lease) == nullptr) return;
  warn(session, session.name + " could not compute its share: " + failure.message);
  if (calibration) return feed_(modes::Calibrated{session.id, failure.lease, true});
  feed_(modes::LeaseFailed{session.id, failure.lease});
}

void Inbox::on_synced(Session& session, const wire::Synced& synced) {
  if (session.weights_sent && session.weights_sent->version == synced.version) {
    const Duration took = now_ - session.weights_sent->at;
    if (!session.local()) parts_.performance.received(session.worker, {session.weights_sent->bytes, seconds(took)});
    const double share = session.local() ? 1 : pass_share_;
    parts_.performance.reached(session.worker,
                               Duration(static_cast<Duration::rep>(static_cast<double>(took.count()) * share)));
    session.weights_sent.reset();
  }
  if (synced.version <= parts_.machine.version())
    session.holds = std::max(session.holds, std::optional(synced.version));
  feed_(modes::WorkerSynced{session.id, synced.version});
}

void Inbox::on_refresh(Session& session, const wire::Refresh& refresh) {
  session.holds.reset();
  if (refresh.version != 0) {
    warn(session, session.name + " found its weights of version " + std::to_string(refresh.version) +
                      " to differ from those of this run; it gets them whole, and a strike" +
                      " (its memory or its processor may be faulty)");
  }
  feed_(modes::RefreshWanted{session.id, refresh.version != 0});
}

void Inbox::on_begin(Session& session, const wire::Begin& begin) {
  const modes::Lease* lease = live_lease(session, begin.pass, begin.lease);
  if (lease == nullptr || lease->state != modes::LeaseState::granted) return;
  const modes::Interval range{begin.first, begin.count};
  if (begin.count == 0 || begin.count > lease->range.count || range != lease->part(begin.count)) {
    return violation(session, "a Begin for at most " + range_text(lease->range.first, lease->range.count),
                     range_text(begin.first, begin.count));
  }
  feed_(modes::LeaseBegun{session.id, lease->id, range, begin.weight, begin.loss_sum, begin.ahead});
}

void Inbox::warn(Session& session, std::string text) {
  if (session.lines.take(text, now_)) parts_.output.warning(std::move(text));
}

void Inbox::measure(Session& session, const wire::Finish& finish, const Asked::Lease& asked) {
  const Duration slack = parts_.options.timeouts.lease_min;
  const std::optional<double> took = asked.took(finish.count, finish.compute_seconds, now_, slack);
  const std::optional<double> waited = asked.took(0, finish.wait_seconds, now_, slack);
  if (is_calibration(finish.pass)) {
    if (took) parts_.performance.calibrated(session.worker, finish.count, *took);
    return;
  }
  // Of the last lease even when its pass is closed already: the last chunk closes it, and this comes after.
  KnownWorker& worker = parts_.workers.at(session.worker);
  worker.compute_seconds = took.value_or(0);
  worker.wait_seconds = waited.value_or(0);
  parts_.performance.residual(session.worker, finish.residual);
  if (took)
    parts_.performance.computed(modes::PassId::unpack(finish.pass).kind, session.worker, finish.lease, finish.count,
                                *took);
}

void Inbox::on_finish(Session& session, const wire::Finish& finish) {
  parts_.performance.uses_micro_batch(session.worker,
                                      std::min<std::uint64_t>(finish.micro_batch, parts_.options.train_samples));
  if (const Asked::Lease* sent = session.local() ? nullptr : session.asked.find(finish.sent_lease)) {
    const auto took = sent->took(0, finish.sent_seconds, now_, parts_.options.timeouts.lease_min);
    if (took && finish.sent_bytes <= parts_.server.layout().flat_elements() * sizeof(float))
      parts_.performance.sent(session.worker, finish.sent_lease, {finish.sent_bytes, *took});
  }
  Asked::Lease* const asked = session.asked.find(finish.lease);
  if (asked == nullptr || asked->pass != finish.pass) return;
  if (finish.count > asked->count) {
    return violation(session, "a Finish for at most " + std::to_string(asked->count) + " positions",
                     range_text(finish.first, finish.count));
  }
  if (is_probe(finish.pass)) {
    const bool whole = parts_.probes.keep(session.worker, finish.probe, parts_.server.layout());
    return feed_(modes::Probed{session.id, finish.lease, whole});
  }
  if (finish.count > 0 && !std::exchange(asked->told, true)) measure(session, finish, *asked);
  // Of a version that went by meanwhile it is handed back, which is no fault.
  if (is_calibration(finish.pass)) return feed_(modes::Calibrated{session.id, finish.lease});
  if (is_background(session, finish.lease)) {
    const modes::BackgroundEvaluation& background = *parts_.machine.background();
    const auto result = parts_.evaluations.background(background, finish, parts_.options.test_samples);
    if (result && background.compared) parts_.evaluations.keep(*result);
    if (result && !background.compared) parts_.output.evaluated(*result);
    return feed_(modes::BackgroundEvaluated{session.id, finish.lease, result.has_value()});
  }
  if (finish.count == 0 && parts_.machine.is_overlapped(session.id, finish.lease))
    return feed_(modes::LeaseFinished{.session = session.id, .lease = finish.lease});
  const modes::Lease* lease = live_lease(session, finish.pass, finish.lease);
  if (lease == nullptr) return;
  if (finish.count > lease->range.count) {
    return violation(session, "a Finish for at most " + range_text(lease->range.first, lease->range.count),
                     range_text(finish.first, finish.count));
  }
  if (!finish.scores.empty()) parts_.evaluations.scored(lease->id, finish.scores);
  feed_(modes::LeaseFinished{session.id, lease->id, finish.count, finish.weight, finish.loss_sum, finish.correct});
}

void Inbox::on_bye(Session& session, const wire::Bye& bye) {
  session.said_bye = true;
  const bool left = bye.code == "leave";
  session.why = left ? "it left" : describe(bye);
  feed_(modes::SessionEnded{session.id, left});
}

// --- joining ---

std::optional<wire::Bye> Inbox::refusal(const wire::Ready& ready) const {
  const Result<Layout> theirs = Layout::make(ready.layout);
  if (!theirs) return wire::Bye{"model", "a usable model", theirs.error().message, theirs.error().hint};
  if (std::string differs = difference(parts_.server.layout(), *theirs); !differs.empty()) {
    return wire::Bye{"model", "the model of this run", std::move(differs),
                     "start the worker with the same model and version of motley as the run"};
  }
  if (auto other = wire::fingerprint_difference(parts_.options.train_fingerprint, ready.train_fingerprint)) {
    return wire::Bye{"data", "training data " + other->expected, std::move(other->found), std::move(other->hint)};
  }
  if (parts_.options.test_samples > 0) {
    if (auto other = wire::fingerprint_difference(parts_.options.test_fingerprint, ready.test_fingerprint))
      return wire::Bye{"data", "test data " + other->expected, std::move(other->found), std::move(other->hint)};
  }
  if (auto other = wire::script_difference(parts_.options.script, ready.script))
    return wire::Bye{"model", std::move(other->expected), std::move(other->found), std::move(other->hint)};
  return std::nullopt;
}

void Inbox::on_ready(Session& session, const wire::Ready& ready) {
  if (session.worker != 0) return;
  if (auto bye = refusal(ready)) {
    std::string why = "it has another " + bye->code + ": " + wire::reason_of(*bye);
    return end_session(session, std::move(*bye), std::move(why));
  }
  name_worker(session);
  if (ready.seconds_per_sample >= kSpeedMin && ready.seconds_per_sample <= kSpeedMax && ready.fixed_seconds >= 0 &&
      ready.fixed_seconds <= kSpeedMax) {
    parts_.performance.known_before(session.worker, {ready.fixed_seconds, ready.seconds_per_sample});
  }
  if (const auto cost = plan::heard(ready.wire_seconds)) parts_.performance.costs(session.worker, *cost);
  const bool watched = compute::needs_care(session.hello.device);
  if (watched) parts_.performance.has_pass_sizes(session.worker);
  feed_(modes::WorkerReady{session.id, session.worker, ready.numbers, watched});
}

void Inbox::name_worker(Session& session) {
  std::string name = session.hello.name;
  for (int copy = 2;; ++copy) {
    if (!parts_.workers.is_of_another(name, session.key)) {
      Session* holder = parts_.sessions.named(name);
      if (holder == nullptr) break;
      const fleet::Member* member = parts_.machine.members().find(holder->id);
      if (member == nullptr || !lives(*member, parts_.options.timeouts, now_)) {
        const std::string why = "it came back on a new connection";
        end_session(*holder, wire::Bye{"lost", {}, why, {}}, why);
        break;
      }
    }
    // Two workers of one name: both may work, the display tells them apart, and neither has the other's strikes.
    name = session.hello.name + " (" + std::to_string(copy) + ")";
  }
  session.worker = parts_.workers.number(name, session.key);
  session.name = parts_.workers.at(session.worker).name;
  parts_.performance.connected(session.worker, session.remote());
}

}  // namespace motley::engine
