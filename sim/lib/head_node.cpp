#include "sim/head_node.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace motley::sim {
namespace {

using std::chrono::milliseconds;
constexpr std::uint64_t kHeadStream = 3, kBodyStream = 17;
constexpr std::uint64_t kRun = 0x51D0;

}  // namespace

HeadNode::HeadNode(World& world)
    : world_(world),
      random_(world.scenario.seed, kHeadStream),
      body_(world.scenario.seed, kBodyStream),
      process_(world.queue) {}

void HeadNode::note(std::string_view what, std::uint64_t a, std::uint64_t b) {
  world_.trace.note(world_.queue.now(), "head", what, a, b);
}

Result<ps::Server> HeadNode::server_from_disk() {
  const RunSetup& run = world_.scenario.run;
  auto model = softmax::SoftmaxRegression::make(world_.data.train, world_.data.test, run.seed);
  if (!model) return std::move(model).error();
  if (!snapshot_) return first_server(run, **model);
  return make_server(run, (*model)->layout(), *snapshot_);
}

void HeadNode::start() {
  ++incarnation_;
  process_.start();
  Result<ps::Server> server = server_from_disk();
  MOTLEY_ASSERT(server.ok());
  if (world_.scenario.run.clip_by_step_before)
    server->clip_by_step_before(snapshot_ ? snapshot_->norm_before : std::nullopt);
  note("starts at version", server->version(), incarnation_);
  const std::uint64_t first_version = server->version();
  std::vector<SharedBytes> weights;
  for (ChunkId c = 0; c < server->layout().chunks().size(); ++c) weights.push_back(server->weights(c));
  world_.checks.head_started(incarnation_, server->version(), weights);

  const RunSetup& run = world_.scenario.run;
  engine::CoordinatorOptions options;
  options.run = kRun;
  options.incarnation = incarnation_;
  options.seed = run.seed;
  options.train_samples = run.train_samples;
  options.test_samples = run.test_samples;
  options.global_batch = run.global_batch;
  options.steps = run.steps;
  options.local_steps = run.local_steps;
  options.local_batch = run.local_batch;
  options.rate_by_workers = run.rate_by_workers;
  options.overlap = run.overlap;
  if (const auto owed = owed_.find(first_version); owed != owed_.end()) options.owed = owed->second;
  options.grain = run.grain;
  options.evaluate_every = run.evaluate_every;
  options.pauses = world_.scenario.pauses;
  options.verify = {
      .part = world_.scenario.verify, .secret = run.seed, .probes = world_.scenario.verify > 0, .after = 0};
  resumed_ = std::min(resumed_, first_version);  // what was lost is held again
  options.pause_owed = resumed_ < first_version;
  lost_states_after(first_version);
  if (!states_.empty()) options.state = states_.rbegin()->second;
  options.config = "[simulated]";
  options.train_fingerprint = world_.data.train->fingerprint();
  options.test_fingerprint = world_.data.test ? world_.data.test->fingerprint() : "";
  options.checksums = world_.scenario.checksums;
  options.gradients = world_.scenario.codecs.gradients;
  options.weights = world_.scenario.codecs.weights;
  options.head_cost = wire_cost(world_.scenario.codecs);
  options.timeouts = timeouts();
  coordinator_ = std::make_unique<engine::Coordinator>(std::move(options), std::move(*server), *this);
  coordinator_->start(process_.now());
  process_.later(milliseconds(random_.below(50)), [this] { tick(); });
}

void HeadNode::kill() {
  note("is killed");
  process_.kill();
  for (const engine::SessionId session : sessions_) world_.network.close(session, Side::head);
  sessions_.clear();
  locals_.clear();
  const Time now = world_.queue.now();
  if (next_snapshot_ && next_snapshot_->first <= now) snapshot_ = std::move(next_snapshot_->second);
  next_snapshot_.reset();
  done_ = false;
}

void HeadNode::freeze() {
  note("freezes");
  process_.freeze();
}

void HeadNode::thaw() {
  note("goes on");
  process_.thaw();
}

void HeadNode::tick() {
  coordinator_->tick(process_.now());
  process_.later(kTick, [this] { tick(); });
}

std::vector<SharedBytes> HeadNode::weights() const {
  std::vector<SharedBytes> chunks;
  const ps::Server& server = coordinator_->server();
  for (ChunkId chunk = 0; chunk < server.layout().chunks().size(); ++chunk) chunks.push_back(server.weights(chunk));
  return chunks;
}

std::vector<SharedBytes> HeadNode::held() const {
  std::vector<SharedBytes> chunks;
  chunks.resize(coordinator_->server().layout().chunks().size());
  for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk) chunks[chunk] = coordinator_->held(chunk);
  return chunks;
}

bool HeadNode::accept(std::size_t worker, const wire::Hello& hello, bool local, Network::End end,
                      Network::SessionId& session, std::uint32_t& incarnation, engine::LocalWorker& here) {
  if (!process_.alive() || process_.frozen()) return false;
  Network::End mine;
  const auto id = std::make_shared<engine::SessionId>(0);
  mine.frame = [this, id](wire::Frame frame, engine::Lane) {
    process_.run([this, id, frame = std::move(frame)] { coordinator_->session_frame(*id, frame, process_.now()); });
  };
  mine.closed = [this, id](const std::string& why) {
    process_.run([this, id, why] { coordinator_->session_closed(*id, why, process_.now()); });
  };
  session = *id = world_.network.open(worker, std::move(end), std::move(mine));
  incarnation = incarnation_;
  sessions_.push_back(session);
  if (local) locals_[session] = &here;
  coordinator_->session_opened(session, hello, local ? engine::Locality::process : engine::Locality::network,
                               process_.now());
  return true;
}

void HeadNode::send(engine::SessionId session, wire::Frame frame, engine::Lane lane) {
  if (frame.header.type == wire::FrameType::control) {
    if (Result<wire::Message> message = wire::decode(frame.body.bytes()); message) {
      world_.checks.head_said(session, *message);
      if (world_.trace.printing() && !std::holds_alternative<wire::Heartbeat>(*message)) {
        note("-> " + std::string(wire::name_of(*message)), session);
      }
    } else {
      world_.checks.fail("the head sent a control frame that cannot be read: " + message.error().message);
    }
  }
  if (frame.header.type == wire::FrameType::weights && frame.header.codec != wire::CodecId::fp32) ++deltas_;
  world_.network.send(session, Side::head, std::move(frame), lane);
}

void HeadNode::close(engine::SessionId session, const wire::Bye& bye) {
  note("closes (" + bye.code + ") session", session);
  world_.network.close(session, Side::head);
}

bool HeadNode::delegate(engine::SessionId session, const engine::DelegatedSteps& order) {
  const auto local = locals_.find(session);
  if (local == locals_.end()) return false;
  note("lends steps", order.steps, session);
  engine::DelegationEvents events;
  events.step = [this, session](const engine::DelegatedStep& step, const std::function<void()>&) {
    process_.run([this, session, step] {
      const std::uint64_t before = version();
      coordinator_->delegated_step(session, step, process_.now());
      if (version() > before) ++steps_delegated_;
    });
  };
  events.ended = [this, session](const engine::DelegationEnd& end) {
    process_.run([this, session, end] { coordinator_->delegation_ended(session, end, process_.now()); });
  };
  return local->second->delegate(order, std::move(events));
}

void HeadNode::cut(engine::SessionId session, std::uint64_t number) {
  note("wants steps back", number, session);
  if (const auto local = locals_.find(session); local != locals_.end()) local->second->cut(number);
}

void HeadNode::worker_changed(const engine::WorkerChange& change) {
  note(change.name + ": " + change.reason, static_cast<std::uint64_t>(change.event), change.session);
}

void HeadNode::warning(std::string text) {
  note("warns: " + text);
  if (!text.ends_with(" strikes")) return;
  for (std::size_t i = 0; i < world_.scenario.workers.size(); ++i)
    if (world_.scenario.workers[i].fault == Fault::none && text.starts_with("host" + std::to_string(i) + "/"))
      ++world_.sound_struck;
}

engine::StepClosed HeadNode::sabotaged(const engine::StepClosed& step) const {
  engine::StepClosed copy = step;
  if (step.step != 2) return copy;
  if (world_.sabotage == Sabotage::drop_range) copy.ranges.pop_back();
  if (world_.sabotage == Sabotage::double_range) copy.ranges.push_back(copy.ranges.back());
  if (world_.sabotage == Sabotage::scale_loss) copy.loss_sum *= 1.001;
  if (world_.sabotage == Sabotage::lose_step) copy.step = 3;
  return copy;
}

void HeadNode::step_closed(const engine::StepClosed& step) {
  note("closed step", step.step, step.samples);
  world_.verified += step.verified;
  note("bits of its loss", static_cast<std::uint64_t>(step.loss_sum * 1e9));
  const Time now = world_.queue.now();
  world_.checks.step_closed(incarnation_, sabotaged(step), weights(), held(), now, world_.healed_at);
  if (next_snapshot_ && next_snapshot_->first <= now) {
    snapshot_ = std::move(next_snapshot_->second);
    next_snapshot_.reset();
  }
  if (!next_snapshot_ && (step.step + 1) % world_.scenario.disk.snapshot_every == 0) {
    next_snapshot_.emplace(now + world_.scenario.disk.write, coordinator_->server().snapshot());
  }
  owed_[step.step + 1] = step.owed;
}

void HeadNode::evaluated(const engine::Evaluated& evaluation) {
  note("evaluated version", evaluation.version, evaluation.correct);
  world_.checks.evaluated(evaluation);
}

void HeadNode::lost_states_after(std::uint64_t version) { states_.erase(states_.upper_bound(version), states_.end()); }

std::optional<SharedBytes> HeadNode::next_state() {
  constexpr std::uint64_t kLongest = 600 << 10;  // some pieces
  if (body_.below(2) == 0) return std::nullopt;
  std::vector<std::byte> bytes(body_.below(4) == 0 ? body_.below(kLongest) : body_.below(100));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(body_.below(256));
  return SharedBytes::copy_of(bytes);
}

void HeadNode::paused(std::uint64_t version, bool step) {
  constexpr std::uint64_t kBodyMilliseconds = 400;
  note(step ? "is held after a step at version" : "is held at version", version);
  world_.checks.paused(version, step);
  process_.later(milliseconds(body_.below(kBodyMilliseconds)), [this, version, step] {
    note("is released at version", version);
    world_.checks.resumed();
    if (!step) resumed_ = version;
    engine::Resume resume{.version = version, .rates = {}, .state = next_state()};
    if (resume.state) {
      states_[version] = {coordinator_->state().number + 1, *resume.state};
      world_.checks.state_changed(version, states_[version]);
    }
    coordinator_->resume(resume, process_.now());
  });
}

void HeadNode::finished() {
  note("finished at version", version());
  done_ = true;
}

void HeadNode::failed(Error error) {
  note("failed: " + error.message);
  world_.checks.fail("the run failed: " + error.message);
  failed_ = true;
}

}  // namespace motley::sim
