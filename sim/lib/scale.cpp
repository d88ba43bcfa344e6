#include "sim/scale.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "engine/head/coordinator.h"
#include "engine/worker/worker.h"

namespace motley::sim {
namespace {

constexpr Duration kScaleTick = std::chrono::milliseconds(100);
constexpr std::uint64_t kSamplesEach = 8;
constexpr std::size_t kNewsMax = 20;

Layout layout_of(std::uint64_t parameters) {
  LayoutEntry entry;
  entry.name = "weights";
  entry.shape = {static_cast<std::int64_t>(parameters)};
  Result<Layout> layout = Layout::make({entry});
  MOTLEY_ASSERT(layout.ok());
  return std::move(*layout);
}

class ScaleWorker;

struct ScaleWorld {
  explicit ScaleWorld(const ScaleSetup& s)
      : setup(s), layout(layout_of(s.parameters)), links(queue, s.workers + 1, s.bytes_per_second, s.delay) {}

  void as(std::size_t machine, const std::function<void()>& action) const {
    if (setup.runs_as) setup.runs_as(machine);
    action();
  }
  void tell(const std::string& what) {
    if (report.news.size() < kNewsMax) report.news.push_back(std::to_string(seconds(queue.now())) + " s: " + what);
  }
  /// What came is in memory of whom it came to.
  static wire::Frame received(BufferPool& pool, wire::Frame frame) {
    if (frame.body.size() >= SharedLinks::kShortBytes) frame.body = zeros(pool, frame.body.size());
    return frame;
  }
  static SharedBytes zeros(BufferPool& pool, std::size_t bytes) {
    MutableBytes buffer = pool.take(bytes);
    std::ranges::fill(buffer.bytes(), std::byte{});
    return std::move(buffer).seal();
  }

  const ScaleSetup& setup;
  const Layout layout;
  EventQueue queue;
  SharedLinks links;
  ScaleReport report;
  std::vector<std::unique_ptr<ScaleWorker>> workers;
  bool over = false;
};

/// A connection for messages, one for data, one for what has time.
using Lanes = std::array<SharedLinks::Stream, 3>;
std::size_t lane_index(engine::Lane lane) {
  return lane == engine::Lane::control ? 0 : lane == engine::Lane::background ? 2 : 1;
}

class ScaleWorker final : public engine::WorkerOutput {
 public:
  ScaleWorker(ScaleWorld& world, std::size_t machine) : world_(world), machine_(machine), worker_({}, *this) {}

  Lanes up{};
  void connected() {
    worker_.connected(now(), false);
    tick();
  }
  void frame(wire::Frame frame) {
    world_.as(machine_, [&] { worker_.frame(ScaleWorld::received(pool_, std::move(frame)), now()); });
  }

  void send(wire::Frame frame, engine::Lane lane) override {
    world_.links.send(up[lane_index(lane)], std::move(frame));
  }
  void prepare(const wire::RunSpec&, const SharedBytes&) override {
    later(Duration(1), [this] {
      worker_.prepared(world_.layout, {}, {kSamplesEach * world_.setup.workers, 0}, std::nullopt, now());
    });
  }
  void start_task(engine::TaskOrder order) override {
    order_ = std::move(order);
    missing_ = static_cast<std::size_t>(std::ranges::count_if(order_->weights, &SharedBytes::empty));
    if (missing_ == 0) compute();
  }
  void weights_arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) override {
    if (!order_ || order_->number != number || !order_->weights[chunk].empty()) return;
    order_->weights[chunk] = std::move(weights);
    if (--missing_ == 0) compute();
  }
  void limit_task(std::uint64_t number, std::uint64_t count) override {
    if (!order_ || order_->number != number) return;
    if (count > 0) {
      order_->limit = std::max(order_->limit, count);
      return later(Duration(0), [this, number, holds = order_->limit] { worker_.task_limited(number, holds, now()); });
    }
    order_.reset();
    later(Duration(0), [this, number] { worker_.task_finished(number, {}, 0, 0, now()); });
  }
  void finish_early(std::uint64_t) override {}
  void make_steps(engine::DelegatedSteps) override {}
  void end_steps(std::uint64_t) override {}
  void admitted(std::uint64_t) override {}
  void step_done(std::uint64_t, std::uint64_t) override {}
  void disconnect(bool, const Error& why) override {
    if (!world_.over) world_.tell("worker " + std::to_string(machine_) + " ends: " + why.message);
  }

 private:
  [[nodiscard]] Time now() const { return world_.queue.now(); }
  void later(Duration delay, std::function<void()> action) {
    world_.queue.after(delay, [this, action = std::move(action)] { world_.as(machine_, action); });
  }
  void tick() {
    worker_.tick(now());
    later(kScaleTick, [this] { tick(); });
  }
  void compute() {
    later(world_.setup.compute, [this, number = order_->number] {
      if (order_ && order_->number == number) finish();
    });
  }
  void finish() {
    const std::uint64_t number = order_->number, count = order_->limit;
    const bool train = order_->kind == PassKind::train;
    const auto weight = static_cast<double>(count);
    if (train) worker_.task_begin(number, count, {weight, 0}, now());
    const auto chunks = world_.layout.chunks();
    for (ChunkId chunk = 0; train && chunk < chunks.size(); ++chunk)
      worker_.task_chunk(number, chunk, ScaleWorld::zeros(pool_, chunks[chunk].elements * sizeof(float)), now());
    order_.reset();
    worker_.task_finished(number, {.count = count, .weight = weight}, seconds(world_.setup.compute), 0, now());
  }

  ScaleWorld& world_;
  std::size_t machine_;
  engine::Worker worker_;
  BufferPool pool_{0};
  std::optional<engine::TaskOrder> order_;
  std::size_t missing_ = 0;
};

class ScaleHead final : public engine::CoordinatorOutput {
 public:
  explicit ScaleHead(ScaleWorld& world) : world_(world) {
    ps::Snapshot snapshot;
    for (const Chunk& chunk : world.layout.chunks())
      snapshot.weights.push_back(ScaleWorld::zeros(pool_, chunk.elements * sizeof(float)));
    ps::OptimizerSpec optimizer;
    optimizer.groups = {{}};
    Result<ps::Server> server = ps::Server::make(world.layout, optimizer, {}, 0, snapshot);
    MOTLEY_ASSERT(server.ok());
    engine::CoordinatorOptions options;
    options.run = 1;
    options.train_samples = options.global_batch = kSamplesEach * world.setup.workers;
    options.steps = world.setup.steps;
    options.min_workers = world.setup.workers;
    options.shares.assign(world.setup.workers, 1);
    options.config = "[simulated]";
    options.checksums = false;
    coordinator_ = std::make_unique<engine::Coordinator>(std::move(options), std::move(*server), *this);
  }

  void start() {
    coordinator_->start(now());
    for (std::size_t machine = 1; machine <= world_.setup.workers; ++machine) open(machine);
    tick();
  }

  void send(engine::SessionId session, wire::Frame frame, engine::Lane lane) override {
    world_.links.send(down_.at(session)[lane_index(lane)], std::move(frame));
  }
  void close(engine::SessionId session, const wire::Bye& bye) override {
    if (!world_.over) world_.tell("the head closes worker " + std::to_string(session) + ": " + bye.code);
  }
  void worker_changed(const engine::WorkerChange& change) override {
    if (change.event != engine::Membership::joined && !world_.over) world_.tell(change.name + ": " + change.reason);
  }
  void warning(std::string text) override { world_.tell(text); }
  void step_closed(const engine::StepClosed&) override {
    world_.report.steps.push_back(seconds(now() - last_));
    last_ = now();
    const SharedLinks::Carried carried = world_.links.carried(0);
    world_.report.head.push_back({carried.in - before_.in, carried.out - before_.out});
    before_ = carried;
  }
  void planned(const engine::Planned&) override {}
  void evaluated(const engine::Evaluated&) override {}
  void finished() override { world_.over = world_.report.finished = true; }
  void failed(Error error) override {
    world_.tell("the run failed: " + error.message);
    world_.over = true;
  }

 private:
  [[nodiscard]] Time now() const { return world_.queue.now(); }
  void open(std::size_t machine) {
    ScaleWorker& worker = *world_.workers[machine - 1];
    for (std::size_t lane = 0; lane < worker.up.size(); ++lane) {
      worker.up[lane] = world_.links.open(machine, 0, [this, machine](wire::Frame frame) {
        world_.as(0,
                  [&] { coordinator_->session_frame(machine, ScaleWorld::received(pool_, std::move(frame)), now()); });
      });
      down_[machine][lane] =
          world_.links.open(0, machine, [&worker](wire::Frame frame) { worker.frame(std::move(frame)); });
    }
    wire::Hello hello;
    hello.protocol = wire::kProtocolVersion;
    hello.name = hello.machine = "host" + std::to_string(machine);
    hello.device = "cpu";
    coordinator_->session_opened(machine, hello, engine::Locality::network, now());
    world_.as(machine, [&] { worker.connected(); });
    world_.as(0, [] {});
  }
  void tick() {
    coordinator_->tick(now());
    world_.queue.after(kScaleTick, [this] { world_.as(0, [this] { tick(); }); });
  }

  ScaleWorld& world_;
  BufferPool pool_{0};
  std::unique_ptr<engine::Coordinator> coordinator_;
  std::map<engine::SessionId, Lanes> down_;
  Time last_{};
  SharedLinks::Carried before_;
};

}  // namespace

ScaleReport run_scaled(const ScaleSetup& setup) {
  ScaleWorld world(setup);
  for (std::size_t machine = 1; machine <= setup.workers; ++machine)
    world.workers.push_back(std::make_unique<ScaleWorker>(world, machine));
  std::optional<ScaleHead> head;
  world.as(0, [&] {
    head.emplace(world);
    head->start();
  });
  while (!world.over && world.report.news.size() < kNewsMax && world.queue.step()) {
  }
  world.over = true;
  world.report.frames = world.links.frames();
  world.report.events = world.queue.happened();
  return std::move(world.report);
}

}  // namespace motley::sim
