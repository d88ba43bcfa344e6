#include "engine/coordinator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "codec/delta.h"
#include "engine/coordinator_impl.h"
#include "wire/limits.h"

namespace motley::engine {
namespace {

// Every layer has small tensors, so a worker's forward pass needs them first, then the large ones in their order.
std::uint32_t first_small(const Layout& layout) {
  const auto chunks = layout.chunks();
  return static_cast<std::uint32_t>(std::ranges::find(chunks, ChunkKind::small, &Chunk::kind) - chunks.begin());
}

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// The step whose chunks may be applied one by one, and all after it.
std::uint64_t whole_until(const ps::Server& server) {
  if (!server.outside() && !server.clips()) return 0;
  return server.outside() || !server.clips_by_step_before() ? kNever : server.version() + 1;
}

// So many passes measure what a worker and its messages take.
constexpr std::uint64_t kSoloAfter = 3;

modes::RunConfig machine_config(const CoordinatorOptions& options, const ps::Server& server) {
  return {.incarnation = options.incarnation,
          .first_version = server.version(),
          .steps = options.steps,
          .epochs = options.epochs,
          .train_samples = options.train_samples,
          .test_samples = options.test_samples,
          .global_batch = options.global_batch,
          .batch_changes = options.batch_changes,
          .grain = options.grain,
          .evaluate_every = options.evaluate_every,
          .min_workers = options.min_workers,
          .sessions_max = wire::kSessionsMax,
          .chunks = static_cast<std::uint32_t>(server.layout().chunks().size()),
          .first_applied = first_small(server.layout()),
          .whole_until = whole_until(server),
          .evaluates_aside = !options.rates_follow_evaluations,
          .resumable = options.resumable,
          .holds = options.holds,
          .hold_owed = options.hold_owed,
          .heartbeat = options.timeouts.heartbeat,
          .silence = options.timeouts.silence,
          .loading = options.timeouts.loading,
          .solo_after = server.outside() ? 0 : kSoloAfter};
}

// All chunks, those of large tensors in this codec.
double bytes_in(const Layout& layout, codec::CodecId codec) {
  std::size_t bytes = 0;
  for (const Chunk& chunk : layout.chunks())
    bytes += codec::encoded_bytes(chunk.kind == ChunkKind::large ? codec : codec::CodecId::fp32, chunk.elements);
  return static_cast<double>(bytes);
}

ContributionBytes contribution_bytes(const Layout& layout) {
  ContributionBytes bytes{};
  for (std::size_t codec = 0; codec < bytes.size(); ++codec)
    bytes[codec] = bytes_in(layout, static_cast<codec::CodecId>(codec));
  return bytes;
}

// What a pass moves in its busier direction, of a whole version.
double busier_share(const Layout& layout, const CoordinatorOptions& options) {
  const double up = bytes_in(layout, options.gradients.value_or(codec::CodecId::fp32));
  const double down = bytes_in(layout, options.weights.value_or(codec::CodecId::fp32));
  return std::max(up, down) / std::max(1.0, bytes_in(layout, codec::CodecId::fp32));
}

}  // namespace

Coordinator::Impl::Impl(CoordinatorOptions given, ps::Server start, CoordinatorOutput& out)
    : options(std::move(given)),
      server(std::move(start)),
      output(out),
      pace(options, contribution_bytes(server.layout())),
      machine(machine_config(options, server), pace),
      uploads(server.layout().chunks().size()),
      current(server.layout().chunks().size()),
      next(server.layout().chunks().size()),
      pass_share(busier_share(server.layout(), options)) {
  current.set_version(server.version());
  next.set_version(server.version() + 1);
  for (ChunkId chunk = 0; chunk < server.layout().chunks().size(); ++chunk) current.set(chunk, server.weights(chunk));
}

void Coordinator::Impl::feed(const modes::Event& event) {
  events.push_back(event);
  // Actions answer with events of their own; they wait until the actions before them are done.
  if (feeding) return;
  feeding = true;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const modes::Event happened = events[i];
    actions.clear();
    machine.decide(happened, now, actions);
    for (const modes::Action& action : actions) perform(action);
    const bool other_batch = batch_news && machine.version() >= options.batch_changes.back().first_step;
    if (!pace.news() && !other_batch) continue;
    if (const std::optional<Planned> planned = forecast(machine.batches().batch(machine.version()))) {
      pace.told();
      batch_news = batch_news && !other_batch;
      output.planned(*planned);
    }
  }
  events.clear();
  feeding = false;
}

std::optional<Planned> Coordinator::Impl::forecast(std::uint64_t global_batch) {
  std::vector<fleet::WorkerId> members;
  std::vector<fleet::WorkerId> parked;
  for (const fleet::Member& member : machine.members().all()) {
    const bool waits =
        member.state == fleet::MemberState::parked && global_batch == machine.batches().batch(machine.version());
    if (member.state == fleet::MemberState::member || member.state == fleet::MemberState::parked)
      (waits ? parked : members).push_back(member.worker);
  }
  std::optional<Planned> planned = pace.forecast(global_batch, members, parked);
  if (!planned) return std::nullopt;
  const std::optional<double> evaluation =
      options.test_samples > 0 ? pace.evaluation_seconds(options.test_samples, members) : std::nullopt;
  members.insert(members.end(), parked.begin(), parked.end());
  for (std::size_t i = 0; i < members.size(); ++i) planned->workers[i].name = name_of(members[i]);
  planned->noise = noise_now();
  planned->advice = plan::advise(planned->step, planned->workers, evaluation);
  return planned;
}

std::string Coordinator::Impl::name_of(fleet::WorkerId worker) const {
  return worker == 0 || worker > workers.size() ? std::string("a worker") : workers[worker - 1].name;
}

std::string Coordinator::Impl::sentence(const modes::Reason& reason) const {
  return modes::sentence(reason, [this](fleet::WorkerId worker) { return name_of(worker); });
}

std::string Coordinator::Impl::waiting_for() const {
  if (machine.finished()) return "the run is over";
  const auto& pass = machine.pass();
  if (const auto& stretch = machine.stretch()) return name_of(stretch->worker) + " works alone";
  if (machine.held()) return "waiting for the script, which looks at the run between two steps";
  if (!pass) {
    const std::uint64_t wanted = machine.members_wanted();
    const std::size_t coming = sessions.size() - machine.members().count(fleet::MemberState::member);
    if (wanted == 0) return "opening the next step";
    return "waiting for " + std::to_string(wanted) + (wanted == 1 ? " worker" : " workers") + " to join" +
           (coming == 0 ? std::string() : " (" + std::to_string(coming) + " getting ready)");
  }
  const modes::Lease* slowest = nullptr;
  for (const modes::Lease& lease : machine.leases()) {
    if (!lease.live()) continue;
    const auto left = [](const modes::Lease& of) { return of.range.count - of.last.samples; };
    if (slowest == nullptr || left(lease) > left(*slowest)) slowest = &lease;
  }
  if (slowest == nullptr && machine.stopping()) {
    return "waiting for a worker to finish the open step, which is half applied (interrupt again to leave at once)";
  }
  if (slowest == nullptr) return "waiting for a worker: nobody is left to compute the open step";
  return "waiting for " + name_of(slowest->worker) + " (" + std::to_string(slowest->last.samples) + " of " +
         std::to_string(slowest->range.count) + " samples)";
}

Coordinator::Coordinator(CoordinatorOptions options, ps::Server server, CoordinatorOutput& output)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(server), output)) {}

Coordinator::~Coordinator() = default;

void Coordinator::start(Time now) {
  impl_->now = std::max(impl_->now, now);
  impl_->feed(modes::Started{});
}

void Coordinator::session_opened(SessionId session, const wire::Hello& hello, Reach reach, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const auto [at, fresh] = c.sessions.try_emplace(session);
  MOTLEY_ASSERT(fresh);
  at->second.id = session;
  at->second.hello = hello;
  at->second.reach = reach;
  at->second.name = hello.name;
  c.feed(modes::SessionOpened{session, at->second.local()});
  // The machine may have closed it at once: the run is over, or full.
  if (const auto open = c.sessions.find(session); open != c.sessions.end()) c.send_spec(open->second);
}

void Coordinator::session_frame(SessionId session, const wire::Frame& frame, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const auto at = c.sessions.find(session);
  if (at == c.sessions.end()) return c.drop_frame();
  c.machine.heard(session, c.now);
  Impl::Session& from = at->second;
  const wire::FrameHeader& header = frame.header;
  // A worker learns the run's number from the first frame it gets.
  if (header.run != c.options.run && (from.fence != 0 || header.run != 0)) {
    return c.violation(from, "frames of run " + std::to_string(c.options.run), "run " + std::to_string(header.run));
  }
  if (header.fence != from.fence) return c.drop_frame();
  switch (header.type) {
    case wire::FrameType::control:
      return c.on_control(from, frame);
    case wire::FrameType::gradient:
    case wire::FrameType::statistic:
      return c.on_gradient(from, frame);
    default:
      return c.violation(from, "control, gradient or statistic frames",
                         "type " + std::to_string(static_cast<unsigned>(header.type)));
  }
}

void Coordinator::session_closed(SessionId session, const std::string& why, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const auto at = c.sessions.find(session);
  if (at == c.sessions.end()) return;
  at->second.gone = true;
  at->second.why = why;
  c.feed(modes::SessionEnded{session, false});
}

void Coordinator::tick(Time now) {
  impl_->now = std::max(impl_->now, now);
  impl_->feed(modes::Ticked{});
}

void Coordinator::release(const Release& release, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  if (!c.machine.held() || c.machine.version() != release.version) return;
  if (release.rates) c.server.follow({release.version, *release.rates});
  if (release.state) c.change_state(*release.state);
  c.feed(modes::Released{release.version});
}

void Coordinator::stop(Time now, bool final) {
  impl_->now = std::max(impl_->now, now);
  impl_->feed(modes::StopAsked{final});
}

const ps::Server& Coordinator::server() const { return impl_->server; }
const SharedBytes& Coordinator::held(ChunkId chunk) const { return impl_->current.held(chunk); }

const LossState& Coordinator::state() const { return impl_->options.state; }

std::uint64_t Coordinator::epoch() const {
  const std::uint64_t version = impl_->server.version();
  return range(version >= steps() && version > 0 ? version - 1 : version).epoch;
}

std::uint64_t Coordinator::steps() const { return impl_->machine.steps(); }

StepRange Coordinator::range(std::uint64_t step) const { return impl_->machine.batches().range(step); }

std::optional<Planned> Coordinator::forecast(std::uint64_t global_batch) { return impl_->forecast(global_batch); }

std::string Coordinator::waiting_for() const { return impl_->waiting_for(); }

std::size_t Coordinator::workers() const { return impl_->machine.members().admitted(); }

}  // namespace motley::engine
