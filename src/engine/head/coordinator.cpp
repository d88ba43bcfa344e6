#include "engine/head/coordinator.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/head/impl.h"
#include "engine/head/setup.h"

namespace motley::engine {

Coordinator::Impl::Impl(CoordinatorOptions given, ps::Server start, CoordinatorOutput& out)
    : options(std::move(given)),
      server(std::move(start)),
      output(out),
      performance(options, contribution_bytes(server.layout())),
      machine(machine_config(options, server), performance),
      sessions(options.run, options.checksums, output),
      uploads(server.layout().chunks().size()),
      state(options.state, sessions),
      weights(server, options.weights, sessions, machine.members(), performance),
      noise(performance),
      sketches(options.verify.secret),
      on_device(server, uploads),
      steps(server, uploads, on_device),
      outbox({options, machine.members(), performance, sessions, workers, state, weights, output}),
      delegator({options, server, machine, sessions, weights, noise, performance, output}, feeder()),
      inbox({options, server, on_device, machine, sessions, workers, performance, uploads, sketches, probes,
             evaluations, output},
            busier_share(server.layout(), options), feeder()) {}

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
    if (!performance.news()) continue;
    if (const std::optional<Planned> planned = forecast(machine.batches().batch(machine.version()))) {
      performance.told();
      output.planned(*planned);
    }
  }
  events.clear();
  feeding = false;
}

std::optional<Planned> Coordinator::Impl::forecast(std::uint64_t global_batch, std::uint64_t local_steps) {
  std::vector<fleet::WorkerId> members;
  std::vector<fleet::WorkerId> parked;
  for (const fleet::Member& member : machine.members().all()) {
    const bool waits = member.state == fleet::MemberState::parked && local_steps == 1 &&
                       global_batch == machine.batches().batch(machine.version());
    if (member.state == fleet::MemberState::member || member.state == fleet::MemberState::parked)
      (waits ? parked : members).push_back(member.worker);
  }
  const std::uint64_t total = global_batch * local_steps;
  std::optional<Planned> planned = performance.forecast(total, members, parked, local_steps);
  if (!planned) return std::nullopt;
  const std::optional<double> evaluation =
      options.test_samples > 0 ? performance.evaluation_seconds(options.test_samples, members) : std::nullopt;
  members.insert(members.end(), parked.begin(), parked.end());
  for (std::size_t i = 0; i < members.size(); ++i) planned->workers[i].name = workers.name(members[i]);
  planned->noise = noise.known();
  planned->advice = plan::advise(planned->step, planned->workers, evaluation);
  return planned;
}

std::string Coordinator::Impl::waiting_for() const {
  if (machine.finished()) return "the run is over";
  const auto& pass = machine.pass();
  if (const auto& delegation = machine.delegation()) return workers.name(delegation->worker) + " works alone";
  if (machine.paused()) return "waiting for the script, which looks at the run between two steps";
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
  return "waiting for " + workers.name(slowest->worker) + " (" + std::to_string(slowest->last.samples) + " of " +
         std::to_string(slowest->range.count) + " samples)";
}

Coordinator::Coordinator(CoordinatorOptions options, ps::Server server, CoordinatorOutput& output)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(server), output)) {}

Coordinator::~Coordinator() = default;

void Coordinator::start(Time now) {
  impl_->now = std::max(impl_->now, now);
  impl_->feed(modes::Started{});
}

void Coordinator::session_opened(SessionId session, const wire::Hello& hello, Locality locality, Time now,
                                 std::string key) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  const Session& opened = c.sessions.open(session, hello, locality, std::move(key));
  c.feed(modes::SessionOpened{session, opened.local()});
  // The machine may have closed it at once: the run is over, or full.
  if (const Session* open = c.sessions.find(session)) c.outbox.send_spec(*open);
}

void Coordinator::session_frame(SessionId session, const wire::Frame& frame, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  Session* from = c.sessions.find(session);
  if (from == nullptr) return;
  c.machine.heard(session, c.now);
  c.inbox.on_frame(*from, frame, c.now);
}

void Coordinator::session_closed(SessionId session, const std::string& why, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  Session* closed = c.sessions.find(session);
  if (closed == nullptr) return;
  closed->gone = true;
  closed->why = why;
  c.feed(modes::SessionEnded{session, false});
}

void Coordinator::delegated_step(SessionId session, const DelegatedStep& step, Time now) {
  impl_->now = std::max(impl_->now, now);
  impl_->delegator.step(session, step, impl_->now);
}

void Coordinator::delegation_ended(SessionId session, const DelegationEnd& end, Time now) {
  impl_->now = std::max(impl_->now, now);
  impl_->delegator.ended(session, end);
}

void Coordinator::tick(Time now) {
  impl_->now = std::max(impl_->now, now);
  impl_->feed(modes::Ticked{});
  impl_->outbox.send_due_weights(impl_->now);
}

void Coordinator::resume(const Resume& resume, Time now) {
  Impl& c = *impl_;
  c.now = std::max(c.now, now);
  if (!c.machine.paused() || c.machine.version() != resume.version) return;
  if (resume.rates) c.server.follow({resume.version, *resume.rates});
  if (resume.state) c.state.change(*resume.state);
  c.machine.cut_steps(resume.batches);
  c.feed(modes::Resumed{resume.version});
}

void Coordinator::stop(Time now, bool final) {
  impl_->now = std::max(impl_->now, now);
  impl_->feed(modes::StopAsked{final});
}

const ps::Server& Coordinator::server() const { return impl_->server; }
const SharedBytes& Coordinator::held(ChunkId chunk) const { return impl_->weights.held(chunk); }

const LossState& Coordinator::state() const { return impl_->state.state(); }

std::uint64_t Coordinator::epoch() const {
  const std::uint64_t version = impl_->server.version();
  return range(version >= steps() && version > 0 ? version - 1 : version).epoch;
}

std::uint64_t Coordinator::steps() const { return impl_->machine.steps(); }

StepRange Coordinator::range(std::uint64_t step) const { return impl_->machine.batches().range(step); }

std::optional<Planned> Coordinator::forecast(std::uint64_t global_batch, std::uint64_t local_steps) {
  return impl_->forecast(global_batch, local_steps);
}

std::string Coordinator::waiting_for() const { return impl_->waiting_for(); }

bool Coordinator::computes() const {
  const cluster::CoordinatorMachine& machine = impl_->machine;
  return machine.delegation().has_value() || std::ranges::any_of(machine.leases(), &modes::Lease::live);
}

bool Coordinator::has_room(Time now) const { return impl_->machine.has_room(std::max(impl_->now, now)); }

std::size_t Coordinator::workers() const { return impl_->machine.members().admitted(); }

}  // namespace motley::engine
