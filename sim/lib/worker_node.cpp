#include "sim/worker_node.h"

#include <utility>

#include "base/assert.h"
#include "codec/kernels.h"

namespace motley::sim {
namespace {

using std::chrono::milliseconds;
constexpr std::uint64_t kNodeStream = 100;
constexpr std::uint64_t kComputerStream = 200;
constexpr std::uint64_t kMouthStream = 300;
constexpr std::size_t kOutdated = 20;

}  // namespace

engine::Timeouts timeouts() {
  engine::Timeouts timeouts;
  timeouts.lease_unknown = std::chrono::seconds(4);
  return timeouts;
}

WorkerNode::WorkerNode(World& world, Head& head, std::size_t index)
    : world_(world),
      head_(head),
      index_(index),
      name_("worker " + std::to_string(index)),
      random_(world.scenario.seed, kNodeStream + index),
      mouth_(world.scenario.workers[index].fault, world.scenario.workers[index].faulty, world.scenario.seed,
             kMouthStream + index),
      process_(world.queue),
      computer_(process_, world.scenario.run, world.scenario.workers[index], kComputerStream + index) {}

void WorkerNode::note(std::string_view what, std::uint64_t a, std::uint64_t b) {
  world_.trace.note(world_.queue.now(), name_, what, a, b);
}

void WorkerNode::start() {
  note("starts");
  process_.start();
  prepared_ = false;
  session_ = 0;
  aside_ = false;
  engine::WorkerOptions options;
  options.timeouts = timeouts();
  // Each worker has another processor.
  options.instructions = codec::kernels()[index_ % codec::kernels().size()];
  worker_ = std::make_unique<engine::Worker>(options, *this);
  computer_.build(world_.data);
  process_.later(milliseconds(random_.below(50)), [this] { tick(); });
  dial();
}

wire::Hello WorkerNode::hello() const {
  wire::Hello hello;
  hello.protocol = wire::kProtocolVersion;
  hello.software = "motley sim";
  hello.name = "host" + std::to_string(index_) + "/cpu";
  hello.machine = "host" + std::to_string(index_);
  hello.device = "cpu";
  return hello;
}

void WorkerNode::kill(bool silent) {
  note(silent ? "loses power" : "is killed");
  process_.kill();
  if (session_ == 0) return;
  if (silent) {
    world_.network.vanish(session_, Side::worker);
  } else {
    world_.network.close(session_, Side::worker);
  }
  session_ = 0;
}

void WorkerNode::freeze() {
  note("freezes");
  process_.freeze();
}

void WorkerNode::thaw() {
  note("goes on");
  process_.thaw();
}

void WorkerNode::leave() {
  note("is asked to leave");
  process_.run([this] { worker_->leave(process_.now()); });
}

void WorkerNode::step_aside() {
  note("steps aside");
  process_.run([this] {
    aside_ = true;
    if (session_ != 0) worker_->step_aside(process_.now());
  });
}

void WorkerNode::come_back() {
  process_.run([this] {
    if (!std::exchange(aside_, false)) return;  // started anew meanwhile
    note("may go on");
    if (session_ == 0) dial_later();
  });
}

void WorkerNode::tick() {
  worker_->tick(process_.now());
  process_.later(kTick, [this] { tick(); });
}

void WorkerNode::dial_later() {
  if (ended_ || aside_) return;
  process_.later(milliseconds(100 + random_.below(400)), [this, number = ++dial_number_] {
    if (number == dial_number_) dial();
  });
}

void WorkerNode::dial() {
  if (ended_ || aside_) return;
  const std::uint64_t number = ++dial_number_;
  if (!world_.network.reachable(index_)) {
    dial_later();
    return;
  }
  // TCP and TLS take two round trips, after which both ends know.
  const Duration handshake = world_.network.round_trip(index_) + world_.network.round_trip(index_);
  process_.later(handshake, [this, number] {
    if (ended_ || aside_ || number != dial_number_) return;
    // What the network delivers to this process: dropped when it dies, kept while it is frozen.
    Network::End end;
    end.frame = [this](wire::Frame frame, engine::Lane) {
      process_.run([this, frame = std::move(frame)] { worker_->frame(frame, process_.now()); });
    };
    end.closed = [this](const std::string& why) {
      process_.run([this, why] { worker_->disconnected(why, process_.now()); });
    };
    if (!world_.network.reachable(index_) ||
        !head_.accept(index_, hello(), setup().local, std::move(end), session_, incarnation_, *this)) {
      dial_later();
      return;
    }
    note("connects", session_);
    worker_->connected(process_.now(), world_.scenario.checksums && !setup().local);
  });
}

void WorkerNode::send(wire::Frame frame, engine::Lane lane) {
  if (!mouth_.changes(frame)) return;
  if (frame.header.type == wire::FrameType::control) world_.checks.worker_said(frame);
  if (world_.trace.printing() && frame.header.type == wire::FrameType::control) {
    if (auto message = wire::decode(frame.body.bytes());
        message && !std::holds_alternative<wire::Heartbeat>(*message)) {
      note("-> " + std::string(wire::name_of(*message)), session_);
    }
  }
  world_.network.send(session_, Side::worker, std::move(frame), lane);
}

void WorkerNode::prepare(const wire::RunSpec&, const SharedBytes&) {
  const Duration loading = prepared_ ? milliseconds(1) : milliseconds(10 + random_.below(300));
  prepared_ = true;
  process_.later(loading, [this] {
    const Data& data = world_.data;
    const engine::SampleCounts samples{data.train->size(), data.test ? data.test->size() : 0};
    if (const Codecs& codecs = world_.scenario.codecs; !codecs.gradients || !codecs.weights)
      worker_->knows_wire(wire_cost(codecs));
    worker_->prepared(computer_.model().layout(),
                      {data.train->fingerprint(), data.test ? data.test->fingerprint() : ""}, samples, std::nullopt,
                      process_.now());
  });
}

void WorkerNode::start_task(engine::TaskOrder order) {
  note("computes at version", order.version, order.count);
  if (order.version == 2) {
    switch (world_.sabotage) {
      case Sabotage::mix_versions: {
        std::vector<float> other(computer_.model().layout().chunks()[0].elements, 1e-3F);
        order.weights[0] = SharedBytes::copy_of(std::as_bytes(std::span(other)));
        break;
      }
      case Sabotage::spoil_gradient:
        computer_.scale_next(1.5F);
        break;
      case Sabotage::slow_step:
        computer_.delay_next(std::chrono::seconds(10));
        break;
      case Sabotage::hold_up:
        computer_.delay_next(std::chrono::hours(1));
        break;
      default:
        break;
    }
  }
  if (order.kind == PassKind::train) {
    if (world_.sabotage == Sabotage::negate_bias)
      computer_.scale_next(-1, computer_.model().layout().chunks().size() - 1);
    switch (mouth_.start()) {
      case FaultyMouth::Start::not_finite:
        computer_.poison_next();
        break;
      case FaultyMouth::Start::handed_back:
        return process_.later(Duration(0), [this, number = order.number] {
          worker_->task_finished(number, Outcome{}, 0, 0, process_.now());
        });
      case FaultyMouth::Start::wild:
        computer_.scale_next(1e20F);
        break;
      case FaultyMouth::Start::wrong:
        computer_.scale_next(-1.5F);
        break;
      case FaultyMouth::Start::negated:
        computer_.negate_next();
        break;
      case FaultyMouth::Start::outdated:
        computer_.outdate_next(kOutdated);
        break;
      case FaultyMouth::Start::sound:
        break;
    }
    if (mouth_.lies_by_now() && std::exchange(newest_step_, order.version) != order.version) ++steps_lying_;
  }
  computer_.start(std::move(order), *worker_,
                  [this](const engine::TaskOrder& whole) { world_.checks.task_computes(incarnation_, whole); });
}

void WorkerNode::weights_arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) {
  note("weights arrive while it computes", number, chunk);
  computer_.arrived(number, chunk, std::move(weights));
}

void WorkerNode::limit_task(std::uint64_t number, std::uint64_t count) {
  note("task is limited to", count);
  const std::uint64_t holds = computer_.limit(number, count);
  if (holds > 0)
    process_.later(Duration(0), [this, number, holds] { worker_->task_limited(number, holds, process_.now()); });
}

void WorkerNode::finish_early(std::uint64_t number) {
  note("task ends early", number);
  computer_.finish_early(number);
}

bool WorkerNode::delegate(engine::DelegatedSteps order, engine::DelegationEvents events) {
  worker_->delegate(std::move(order), std::move(events));
  return true;
}

void WorkerNode::cut(std::uint64_t number) { worker_->cut(number); }

void WorkerNode::make_steps(engine::DelegatedSteps order) {
  Computer::DelegatedStepEvents events;
  events.step = [this](const engine::DelegatedStep& step) { worker_->delegated_step(step, [] {}, process_.now()); };
  events.ended = [this](const engine::DelegationEnd& end) { worker_->delegation_ended(end); };
  computer_.delegate(std::move(order), std::move(events));
}

void WorkerNode::end_steps(std::uint64_t number) { computer_.cut(number); }

void WorkerNode::admitted(std::uint64_t worker) { note("is admitted as", worker); }

void WorkerNode::step_done(std::uint64_t version, std::uint64_t samples_mine) {
  note("step done", version, samples_mine);
}

void WorkerNode::disconnect(bool reconnect, const Error& why) {
  note(reconnect ? "closes to try again: " + why.message : "ends: " + why.message, session_);
  world_.network.close(session_, Side::worker);
  session_ = 0;
  if (reconnect) {
    dial_later();
    return;
  }
  ended_ = true;
  ended_well_ = why.message.empty();
}

}  // namespace motley::sim
