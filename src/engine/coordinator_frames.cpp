// From frames to events. What breaks the protocol closes the session; what is merely late is dropped and counted.

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "engine/coordinator_impl.h"
#include "modes/exact/pass.h"
#include "wire/fingerprint.h"

namespace motley::engine {
namespace {

// Seconds that a device may take for a sample, or for starting a pass; what claims to be outside is measured.
constexpr double kSpeedMin = 1e-9;
constexpr double kSpeedMax = 1e4;

std::string bytes_text(std::uint64_t first, std::uint64_t count) {
  return "bytes " + std::to_string(first) + " + " + std::to_string(count);
}

std::string range_text(std::uint64_t first, std::uint64_t count) {
  return std::to_string(count) + " positions from " + std::to_string(first);
}

bool is_calibration(std::uint64_t pass) { return modes::PassId::unpack(pass).kind == PassKind::calibrate; }

std::string describe(const wire::Bye& bye) {
  std::string text = bye.found.empty() ? "it said " + bye.code : bye.found;
  if (!bye.expected.empty()) text += ", expected " + bye.expected;
  if (!bye.hint.empty()) text += " (" + bye.hint + ")";
  return text;
}

}  // namespace

void Coordinator::Impl::end_session(Session& session, wire::Bye bye, std::string why) {
  session.bye = std::move(bye);
  session.why = std::move(why);
  feed(modes::SessionEnded{session.id, false});
}

void Coordinator::Impl::violation(Session& session, std::string expected, std::string found) {
  std::string why = "it broke the protocol: expected " + expected + ", found " + found;
  wire::Bye bye{"protocol", std::move(expected), std::move(found),
                "install the same version of motley on both machines"};
  end_session(session, std::move(bye), std::move(why));
}

// --- gradients ---

std::optional<Coordinator::Impl::Expectation> Coordinator::Impl::header_fault(const wire::FrameHeader& header,
                                                                              std::size_t body) const {
  const auto chunks = server.layout().chunks();
  if (header.chunk >= chunks.size()) {
    return Expectation{"a chunk below " + std::to_string(chunks.size()), "chunk " + std::to_string(header.chunk)};
  }
  const Chunk& chunk = chunks[header.chunk];
  const bool statistic = header.type == wire::FrameType::statistic;
  if (statistic != (chunk.kind == ChunkKind::statistics)) {
    return Expectation{statistic ? "gradients" : "statistics", std::string(statistic ? "statistics" : "gradients") +
                                                                   " in chunk " + std::to_string(header.chunk)};
  }
  const bool exact = header.codec == wire::CodecId::fp32;
  const wire::CodecId given = options.gradients.value_or(header.codec);
  const bool lossy = chunk.kind == ChunkKind::large && given != wire::CodecId::fp32 &&
                     (header.codec == given || header.codec == wire::CodecId::bf16);
  if (!exact && !lossy) {
    const bool large = chunk.kind == ChunkKind::large;
    const wire::CodecId wanted = large ? given : wire::CodecId::fp32;
    return Expectation{
        (large ? "a chunk in " : "a chunk of small tensors or statistics in ") + std::string(codec::to_word(wanted)),
        "one in " + std::string(codec::to_word(header.codec))};
  }
  const std::uint64_t total = codec::encoded_bytes(header.codec, chunk.elements);
  if (header.total != total) {
    return Expectation{std::to_string(total) + " bytes in chunk " + std::to_string(header.chunk),
                       std::to_string(header.total)};
  }
  const bool whole_floats = !exact || (header.offset % sizeof(float) == 0 && header.length % sizeof(float) == 0);
  const bool inside = std::uint64_t{header.offset} + header.length <= total;
  if (header.length == 0 || header.length != body || !whole_floats || !inside) {
    return Expectation{"a segment of whole floats inside " + std::to_string(total) + " bytes",
                       bytes_text(header.offset, header.length) + " with a body of " + std::to_string(body)};
  }
  return std::nullopt;
}

const modes::Lease* Coordinator::Impl::live_lease(const Session& session, std::uint64_t pass,
                                                  std::uint64_t lease) const {
  if (!machine.pass() || machine.pass()->id.pack() != pass) return nullptr;
  const modes::Lease* found = machine.lease(lease);
  return found != nullptr && found->session == session.id && found->live() ? found : nullptr;
}

void Coordinator::Impl::on_gradient(Session& session, const wire::Frame& frame) {
  if (session.fence == 0) return drop_frame();
  const wire::FrameHeader& header = frame.header;
  if (auto fault = header_fault(header, frame.body.size()))
    return violation(session, std::move(fault->expected), std::move(fault->found));
  const modes::Lease* lease = live_lease(session, header.pass, header.subject);
  if (lease == nullptr || machine.pass()->id.kind != PassKind::train) return drop_frame();
  if (header.version != machine.version()) {
    return violation(session, "a gradient at version " + std::to_string(machine.version()),
                     "version " + std::to_string(header.version));
  }
  if (lease->chunks[header.chunk] != modes::Lease::ChunkState::awaited) return drop_frame();
  if (!uploads.fits(lease->id, header)) return violation(session, "segments of one codec", "segments of two");
  if (!uploads.add(lease->id, frame)) return;
  const bool finite =
      uploads.encoded(lease->id, header.chunk, server.layout().chunks()[header.chunk].elements).finite();
  feed(modes::ChunkArrived{session.id, lease->id, header.chunk, finite});
}

// --- control ---

void Coordinator::Impl::on_control(Session& session, const wire::Frame& frame) {
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) return violation(session, "a control message", message.error().message);
  on_message(session, *message);
}

void Coordinator::Impl::on_message(Session& session, const wire::Message& message) {
  const bool admitted = session.fence != 0;
  if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&message)) {
    session.heartbeat_heard_ns = heartbeat->sent_ns;
    session.heartbeat_at = now;
    session.computes = heartbeat->lease != 0;
  } else if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    if (!admitted) on_ready(session, *ready);
  } else if (const auto* bye = std::get_if<wire::Bye>(&message)) {
    on_bye(session, *bye);
  } else if (!admitted) {
    drop_frame();
  } else if (const auto* begin = std::get_if<wire::Begin>(&message)) {
    on_begin(session, *begin);
  } else if (const auto* progress = std::get_if<wire::Progress>(&message)) {
    if (live_lease(session, progress->pass, progress->lease) == nullptr) return drop_frame();
    feed(modes::LeaseProgress{session.id, progress->lease, progress->done, progress->limit, progress->trim});
  } else if (const auto* finish = std::get_if<wire::Finish>(&message)) {
    on_finish(session, *finish);
  } else if (const auto* failure = std::get_if<wire::Failed>(&message)) {
    const bool calibration = is_calibration(failure->pass);
    if (machine.aside() && machine.aside()->session == session.id && machine.aside()->lease == failure->lease)
      return feed(modes::EvaluatedAside{session.id, failure->lease, false});
    if (!calibration && live_lease(session, failure->pass, failure->lease) == nullptr) return drop_frame();
    output.warning(session.name + " could not compute its share: " + failure->message);
    if (calibration) return feed(modes::Calibrated{session.id, failure->lease, true});
    feed(modes::LeaseFailed{session.id, failure->lease});
  } else if (const auto* synced = std::get_if<wire::Synced>(&message)) {
    if (session.weights_sent && session.weights_sent->version == synced->version) {
      const Duration took = now - session.weights_sent->at;
      if (!session.local()) pace.received(session.worker, {session.weights_sent->bytes, seconds(took)});
      const double share = session.local() ? 1 : pass_share;
      pace.reached(session.worker, Duration(static_cast<Duration::rep>(static_cast<double>(took.count()) * share)));
      session.weights_sent.reset();
    }
    if (synced->version <= machine.version()) session.holds = std::max(session.holds, std::optional(synced->version));
    feed(modes::WorkerSynced{session.id, synced->version});
  } else if (const auto* refresh = std::get_if<wire::Refresh>(&message)) {
    on_refresh(session, *refresh);
  } else if (std::holds_alternative<wire::Yield>(message)) {
    feed(modes::WorkerYields{session.id});
  } else {
    violation(session, "a message of a worker", std::string(wire::name_of(message)));
  }
}

void Coordinator::Impl::on_refresh(Session& session, const wire::Refresh& refresh) {
  session.holds.reset();
  if (refresh.version != 0) {
    output.warning(session.name + " found its weights of version " + std::to_string(refresh.version) +
                   " to differ from those of this run; it gets them whole, and a strike" +
                   " (its memory or its processor may be faulty)");
  }
  feed(modes::RefreshWanted{session.id, refresh.version != 0});
}

void Coordinator::Impl::on_begin(Session& session, const wire::Begin& begin) {
  const modes::Lease* lease = live_lease(session, begin.pass, begin.lease);
  if (lease == nullptr || lease->state != modes::LeaseState::granted) return drop_frame();
  const modes::Interval range{begin.first, begin.count};
  if (begin.count == 0 || begin.count > lease->range.count || range != lease->part(begin.count)) {
    return violation(session, "a Begin for at most " + range_text(lease->range.first, lease->range.count),
                     range_text(begin.first, begin.count));
  }
  feed(modes::LeaseBegun{session.id, lease->id, range, begin.weight, begin.loss_sum});
}

void Coordinator::Impl::on_finish(Session& session, const wire::Finish& finish) {
  pace.uses_micro_batch(session.worker, finish.micro_batch);
  if (!session.local()) pace.sent(session.worker, finish.sent_lease, {finish.sent_bytes, finish.sent_seconds});
  if (is_calibration(finish.pass)) {
    pace.calibrated(session.worker, finish.count, finish.compute_seconds);
    return feed(modes::Calibrated{session.id, finish.lease});
  }
  if (finish.count > 0) {
    // Of the last lease even when its pass is closed already: the last chunk closes it, and this comes after.
    workers[session.worker - 1].compute_seconds = finish.compute_seconds;
    workers[session.worker - 1].wait_seconds = finish.wait_seconds;
    pace.residual(session.worker, finish.residual);
    pace.computed(modes::PassId::unpack(finish.pass).kind, session.worker, finish.lease, finish.count,
                  finish.compute_seconds);
  }
  if (machine.aside() && machine.aside()->session == session.id && machine.aside()->lease == finish.lease)
    return evaluated_aside(finish);
  const modes::Lease* lease = live_lease(session, finish.pass, finish.lease);
  if (lease == nullptr) return drop_frame();
  if (finish.count > lease->range.count) {
    return violation(session, "a Finish for at most " + range_text(lease->range.first, lease->range.count),
                     range_text(finish.first, finish.count));
  }
  if (!finish.scores.empty()) scores[lease->id] = finish.scores;
  feed(modes::LeaseFinished{session.id, lease->id, finish.count, finish.weight, finish.loss_sum, finish.correct});
}

void Coordinator::Impl::on_bye(Session& session, const wire::Bye& bye) {
  session.said_bye = true;
  const bool left = bye.code == "leave";
  session.why = left ? "it left" : describe(bye);
  feed(modes::SessionEnded{session.id, left});
}

// --- joining ---

std::optional<wire::Bye> Coordinator::Impl::refusal(const wire::Ready& ready) const {
  const Result<Layout> theirs = Layout::make(ready.layout);
  if (!theirs) return wire::Bye{"model", "a usable model", theirs.error().message, theirs.error().hint};
  if (std::string differs = difference(server.layout(), *theirs); !differs.empty()) {
    return wire::Bye{"model", "the model of this run", std::move(differs),
                     "start the worker with the same model and version of motley as the run"};
  }
  if (auto other = wire::fingerprint_difference(options.train_fingerprint, ready.train_fingerprint)) {
    return wire::Bye{"data", "training data " + other->expected, std::move(other->found), std::move(other->hint)};
  }
  if (options.test_samples > 0) {
    if (auto other = wire::fingerprint_difference(options.test_fingerprint, ready.test_fingerprint))
      return wire::Bye{"data", "test data " + other->expected, std::move(other->found), std::move(other->hint)};
  }
  return std::nullopt;
}

void Coordinator::Impl::on_ready(Session& session, const wire::Ready& ready) {
  if (session.worker != 0) return drop_frame();
  if (auto bye = refusal(ready)) {
    std::string why = "it has another " + bye->code + ": expected " + bye->expected + ", found " + bye->found;
    return end_session(session, std::move(*bye), std::move(why));
  }
  name_worker(session);
  if (ready.seconds_per_sample >= kSpeedMin && ready.seconds_per_sample <= kSpeedMax && ready.fixed_seconds >= 0 &&
      ready.fixed_seconds <= kSpeedMax) {
    pace.known_before(session.worker, {ready.fixed_seconds, ready.seconds_per_sample});
  }
  feed(modes::WorkerReady{session.id, session.worker});
}

void Coordinator::Impl::name_worker(Session& session) {
  std::string name = session.hello.name;
  for (int copy = 2;; ++copy) {
    const auto holder = std::find_if(sessions.begin(), sessions.end(), [&](const auto& entry) {
      return entry.second.worker != 0 && entry.second.name == name;
    });
    if (holder == sessions.end()) break;
    const fleet::Member* member = machine.members().find(holder->first);
    if (member == nullptr || !lives(*member)) {
      const std::string why = "it came back on a new connection";
      end_session(holder->second, wire::Bye{"lost", {}, why, {}}, why);
      break;
    }
    // Two workers of one name: both may work, the display tells them apart.
    name = session.hello.name + " (" + std::to_string(copy) + ")";
  }
  session.name = name;
  const auto known = std::find_if(workers.begin(), workers.end(), [&](const Worker& w) { return w.name == name; });
  session.worker = static_cast<fleet::WorkerId>(known - workers.begin()) + 1;
  pace.connected(session.worker, session.remote());
  if (known == workers.end()) workers.push_back({.name = name});
}

}  // namespace motley::engine
