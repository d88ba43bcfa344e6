#pragma once
// One run of the softmax model in this process: its data, coordinator and workers, with all their threads.

#include <gtest/gtest.h>

#include <future>
#include <set>

#include "../store/temporary.h"
#include "runtime/head/coordinator_host.h"
#include "runtime/worker/worker_host.h"
#include "softmax/softmax.h"
#include "transport/inproc/inproc.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime::test {

using store::test::message;
using store::test::TemporaryDirectory;

inline constexpr std::uint64_t kSamples = 96, kBatch = 32, kSteps = 9, kSeed = 3;

class Recorder final : public report::Sink {
 public:
  std::vector<report::StepDone> steps;
  std::vector<report::EvalDone> evals;
  std::vector<report::EvalPointReached> eval_points;
  std::vector<report::WorkerChanged> workers;
  std::vector<Error> errors;
  std::vector<std::uint64_t> checkpoints;
  std::optional<report::Done> over;
  std::function<void(const report::StepDone&)> on_step;

  void take(const report::Event& event) override {
    std::visit(report::overloaded{[this](const report::WorkerChanged& e) { workers.push_back(e); },
                                  [this](const report::StepDone& e) {
                                    steps.push_back(e);
                                    if (on_step) on_step(e);
                                  },
                                  [this](const report::EvalDone& e) { evals.push_back(e); },
                                  [this](const report::EvalPointReached& e) {
                                    eval_points.push_back(e);
                                    eval_points.back().state = {};
                                  },
                                  [this](const report::CheckpointWritten& e) { checkpoints.push_back(e.step); },
                                  [this](const report::Done& e) { over = e; },
                                  [this](const report::Failure& e) { errors.push_back(e.error); }, [](const auto&) {}},
               event);
  }
};

struct SceneSettings {
  std::uint64_t min_workers = 1, run = 1;
  std::uint64_t side = 8;  // of the images: the model has 4 * side * side weights
  wire::CodecId weights = wire::CodecId::fp32;
  std::shared_ptr<const Offers> offers{};
};

inline std::shared_ptr<const softmax::Blobs> blobs(softmax::Part part, std::uint64_t side) {
  return std::make_shared<softmax::Blobs>(softmax::BlobSizes{kSamples, side, 4}, part);
}

// Data, model and coordinator of one run; workers are added to it. What the recorder holds is read after wait().
struct Scene {
  TemporaryDirectory dir;
  std::shared_ptr<const softmax::Blobs> train, test;
  std::unique_ptr<softmax::SoftmaxRegression> model;
  Recorder recorder;
  std::promise<Status> ended;
  std::unique_ptr<CoordinatorHost> host;
  std::vector<std::unique_ptr<WorkerHost>> workers;
  std::vector<std::promise<Status>> worker_ended = std::vector<std::promise<Status>>(8);

  explicit Scene(const SceneSettings& settings = {})
      : train(blobs(softmax::Part::train, settings.side)),
        test(blobs(softmax::Part::test, settings.side)),
        model(*softmax::SoftmaxRegression::make(train, test, kSeed)) {
    CoordinatorHostOptions options;
    options.engine.run = options.token.run = settings.run;
    options.token.plaintext = true;
    options.engine.seed = kSeed;
    options.engine.train_samples = options.engine.test_samples = kSamples;
    options.engine.global_batch = kBatch;
    options.engine.steps = kSteps;
    options.engine.min_workers = settings.min_workers;
    options.engine.weights = settings.weights;
    options.offers = settings.offers;
    options.engine.train_fingerprint = train->fingerprint();
    options.engine.test_fingerprint = test->fingerprint();
    options.journal.run_dir = dir.path().string();
    options.journal.checkpoint_base.layout = model->layout();
    options.journal.checkpoint_base.run = settings.run;
    auto ledger =
        store::LedgerWriter::open(dir / "ledger", {settings.run, kSeed, kSamples, kBatch, train->fingerprint()});
    EXPECT_TRUE(ledger) << message(ledger);
    host = std::make_unique<CoordinatorHost>(std::move(options), make_server(), std::move(*ledger), recorder,
                                             [this](Status status) { ended.set_value(std::move(status)); });
  }
  ~Scene() { workers.clear(); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  static wire::Hello hello_of(const std::string& name) {
    wire::Hello hello;
    hello.protocol = wire::kProtocolVersion;
    hello.name = name;
    hello.machine = "here";
    hello.device = "cpu";
    return hello;
  }
  ps::Server make_server() const {
    ps::Snapshot snapshot;
    const std::vector<float> flat = model->initial_weights();
    for (const Chunk& chunk : model->layout().chunks()) {
      snapshot.weights.push_back(
          SharedBytes::copy_of(std::as_bytes(std::span(flat).subspan(chunk.offset, chunk.elements))));
    }
    ps::GroupSpec group;
    group.lr = 0.1;
    return *ps::Server::make(model->layout(), {ps::OptimizerKind::sgd, {group}}, {}, 0, snapshot);
  }
  WorkerHost& make_worker(const std::string& name, const std::string& data = "", std::size_t data_connections = 1) {
    WorkerHostOptions options;
    options.data_connections = [data_connections](const transport::PeerIdentity&) { return data_connections; };
    options.hello = hello_of(name);
    options.prepare = [this, data](const wire::RunSpec&, const SharedBytes&) -> Result<PreparedWorker> {
      auto made = softmax::SoftmaxRegression::make(train, test, kSeed);
      if (!made) return made.error();
      PreparedWorker worker;
      worker.prepared = {std::move(*made), kSamples, kSeed, 8, false};
      worker.compared.train_fingerprint = data.empty() ? train->fingerprint() : data;
      worker.compared.test_fingerprint = test->fingerprint();
      worker.samples = {train->size(), test->size()};
      return worker;
    };
    WorkerHostEvents events;
    events.ended = [this, number = workers.size()](Status status) {
      worker_ended[number].set_value(std::move(status));
    };
    return *workers.emplace_back(std::make_unique<WorkerHost>(options, std::move(events)));
  }
  void add_worker(const std::string& name, const std::string& data = "", bool solo = true) {
    WorkerHost& worker = make_worker(name, data);
    auto [mine, theirs] = transport::make_inproc_pair();
    host->connections().add_local(hello_of(name), std::move(theirs), solo ? worker.local_worker() : nullptr);
    worker.run_local(std::move(mine));
  }
  Status wait() { return ended.get_future().get(); }
  store::Audit audit() const {
    const auto ledger = store::read_ledger(dir / "ledger");
    EXPECT_TRUE(ledger) << message(ledger);
    return store::audit(*ledger);
  }
  std::vector<float> trained() const {
    std::vector<std::string> warnings;
    const auto content = store::read_latest_checkpoint(dir.path(), warnings);
    EXPECT_TRUE(content) << message(content);
    std::vector<float> all;
    for (const SharedBytes& chunk : content->weights) {
      all.insert(all.end(), chunk.floats().begin(), chunk.floats().end());
    }
    return all;
  }
};

/// The head begins behind a port of this machine, without TLS; with what others come to it by.
inline std::unique_ptr<transport::Listener> begin_behind(Scene& scene, transport::Tcp& tcp, fleet::JoinToken& token) {
  auto listener = tcp.listen({"127.0.0.1", 0},
                             [&scene](auto connection) { scene.host->connections().accept(std::move(connection)); });
  EXPECT_TRUE(listener) << message(listener);
  scene.host->start();
  token.run = 1;
  token.plaintext = true;
  token.addresses = {"127.0.0.1"};
  token.port = (*listener)->port();
  return std::move(*listener);
}

inline void expect_complete(Scene& scene) {
  const Status status = scene.wait();
  ASSERT_TRUE(status) << message(status);
  EXPECT_EQ(scene.recorder.steps.size(), kSteps);
  ASSERT_TRUE(scene.recorder.over.has_value());
  EXPECT_EQ(scene.recorder.over->steps, kSteps);
  EXPECT_EQ(scene.recorder.over->samples, kSteps * kBatch);
  EXPECT_EQ(scene.recorder.checkpoints.back(), kSteps);
  ASSERT_EQ(scene.recorder.eval_points.size(), kSteps * kBatch / kSamples);
  for (std::size_t i = 0; i < scene.recorder.eval_points.size(); ++i) {
    EXPECT_EQ(scene.recorder.eval_points[i].epoch, i);
    EXPECT_EQ(scene.recorder.eval_points[i].version, (i + 1) * kSamples / kBatch);
    EXPECT_EQ(scene.recorder.eval_points[i].samples, kSamples);
  }
  EXPECT_TRUE(scene.recorder.errors.empty());
  const store::Audit audit = scene.audit();
  EXPECT_EQ(audit.samples, kSteps * kBatch);
  EXPECT_EQ(audit.missing, 0U);
  EXPECT_EQ(audit.duplicate, 0U);
}

}  // namespace motley::runtime::test
