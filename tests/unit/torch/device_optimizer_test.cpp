// Steps whose optimizer runs beside the weights, on the path of accelerators, against those of the server.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.h"
#include "motley/device_optimizer.h"
#include "ps/server.h"
#include "staged_cases.h"

namespace motley::torch_adapter {
namespace {

constexpr std::uint64_t kSteps = 4, kBatch = 32;

struct Optimizer {
  std::string name;
  ps::OptimizerKind kind;
  ps::GroupSpec group;
  double clip_norm = 0;
};

const Optimizer kOptimizers[] = {
    {"sgd", ps::OptimizerKind::sgd, {.lr = 0.05, .weight_decay = 0.01}},
    {"momentum", ps::OptimizerKind::sgd, {.lr = 0.05, .momentum = 0.9, .dampening = 0.1}},
    {"nesterov", ps::OptimizerKind::sgd, {.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01}, 0.5},
    {"adam", ps::OptimizerKind::adam, {.lr = 1e-3, .weight_decay = 0.01}},
    {"adamw", ps::OptimizerKind::adamw, {.lr = 1e-3, .weight_decay = 0.1}, 0.5},
};

class DeviceOptimizerTest : public testing::TestWithParam<std::tuple<Case, Optimizer>> {
 protected:
  struct Side {
    explicit Side(const Case& made, const Optimizer& how) : state(std::move(initial_state(made.spec)).value()) {
      Options options = one_thread();
      options.staged = true;
      device = driven(made.spec, options, made.dataset, made.dataset);
      ps::Snapshot start;
      start.weights = state.weights;
      server.emplace(*ps::Server::make(state.layout, {how.kind, {how.group}}, {}, how.clip_norm, start));
    }
    Outcome run(Sink& sink, bool resident) {
      const std::vector<std::uint64_t> indices = some_indices(7 * server->version(), kBatch, kStaged);
      std::vector<SharedBytes> chunks;
      for (ChunkId chunk = 0; chunk < state.layout.chunks().size(); ++chunk) chunks.push_back(server->weights(chunk));
      ChunkWeights weights(std::move(chunks));
      Task task;
      task.version = server->version();
      task.indices = indices;
      task.micro_batch = 16;
      task.resident = resident;
      const Result<Outcome> outcome = device->loop.run(task, weights, sink, FixedStop(kBatch));
      EXPECT_TRUE(outcome.ok()) << outcome.error().message;
      EXPECT_EQ(weights.gets > 0, !resident);
      return outcome ? *outcome : Outcome{};
    }
    std::pair<double, double> step() {
      RecordingSink sink(state.layout);
      const Outcome outcome = run(sink, false);
      for (ChunkId chunk = 0; chunk < state.layout.chunks().size(); ++chunk) {
        const Chunk& place = state.layout.chunks()[chunk];
        const std::span<const float> sum(sink.flat.data() + place.offset, place.elements);
        server->reduce(chunk, {&sum, 1}, outcome.weight, outcome.count);
      }
      const double norm = server->gradient_norm();
      EXPECT_TRUE(server->close_gradient().ok());
      for (ChunkId chunk = 0; chunk < state.layout.chunks().size(); ++chunk) server->apply(chunk);
      server->finish_step();
      return {norm, outcome.loss_sum};
    }
    InitialState state;
    std::optional<ps::Server> server;
    std::unique_ptr<Driven> device;
  };

  static void expect_close(const std::vector<SharedBytes>& found, const std::vector<SharedBytes>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (ChunkId chunk = 0; chunk < found.size(); ++chunk) {
      ASSERT_EQ(found[chunk].size(), expected[chunk].size()) << "chunk " << chunk;
      double difference = 0, norm = 0;
      for (std::size_t i = 0; i < found[chunk].floats().size(); ++i) {
        const double a = found[chunk].floats()[i], b = expected[chunk].floats()[i];
        ASSERT_TRUE(std::isfinite(a));
        difference += (a - b) * (a - b);
        norm += b * b;
      }
      EXPECT_LE(std::sqrt(difference), 2e-6 * std::sqrt(norm) + 1e-12) << "chunk " << chunk;
    }
  }
};

TEST_P(DeviceOptimizerTest, StepsOnTheDeviceAreThoseOfTheServer) {
  const auto& [made, how] = GetParam();
  Side here(made, how), there(made, how);
  DeviceOptimizer* device_optimizer = there.device->model->device_optimizer();
  ASSERT_NE(device_optimizer, nullptr);
  for (int stretch = 0; stretch < 2; ++stretch) {
    ASSERT_TRUE(there.server->settle(*device_optimizer).ok());
    for (std::uint64_t i = 0; i < kSteps; ++i) {
      const auto [norm, loss] = here.step();
      RecordingSink sink(there.state.layout);
      const Outcome outcome = there.run(sink, true);
      EXPECT_EQ(sink.begun, 1);
      EXPECT_TRUE(sink.order.empty());
      const Result<StepNumbers> found = device_optimizer->reduce(outcome.weight, outcome.count);
      ASSERT_TRUE(found.ok()) << found.error().message;
      ASSERT_TRUE(there.server->step_at(*device_optimizer, found->norm).ok());
      EXPECT_NEAR(how.clip_norm > 0 ? found->norm : norm, norm, 1e-5 * norm);
      EXPECT_NEAR(found->loss_sum, loss, 1e-5 * loss);
    }
    const Result<ps::Snapshot> downloaded = there.server->download(*device_optimizer);
    device_optimizer->leave();
    ASSERT_TRUE(downloaded.ok());
    const ps::Snapshot expected = here.server->snapshot();
    EXPECT_EQ(downloaded->version, expected.version);
    expect_close(downloaded->weights, expected.weights);
    ASSERT_EQ(downloaded->optimizer.size(), expected.optimizer.size());
    for (const auto& [name, chunks] : expected.optimizer) expect_close(downloaded->optimizer.at(name), chunks);
    // From here on by lease, and then on the device again.
    Side after(made, how);
    after.server->adopt(*downloaded);
    there.server.emplace(std::move(*after.server));
    here.step();
    there.step();
    expect_close(there.server->snapshot().weights, here.server->snapshot().weights);
  }
}

TEST_P(DeviceOptimizerTest, AGradientThatIsNotFiniteIsNoticed) {
  const auto& [made, how] = GetParam();
  Side side(made, how);
  DeviceOptimizer* device_optimizer = side.device->model->device_optimizer();
  std::vector<float> wrong(side.state.layout.chunks()[0].elements, std::numeric_limits<float>::infinity());
  ps::Snapshot start = side.server->snapshot();
  start.weights[0] = SharedBytes::copy_of(std::as_bytes(std::span(wrong)));
  side.server->adopt(start);
  ASSERT_TRUE(side.server->settle(*device_optimizer).ok());
  RecordingSink sink(side.state.layout);
  const Outcome outcome = side.run(sink, true);
  const Result<StepNumbers> step = device_optimizer->reduce(outcome.weight, outcome.count);
  ASSERT_TRUE(step.ok());
  EXPECT_FALSE(std::isfinite(step->norm) && std::isfinite(step->loss_sum));
  EXPECT_EQ(side.server->download(*device_optimizer)->version, 0U);
}

TEST_P(DeviceOptimizerTest, AfterStepsThatAreTakenBackTheWeightsAreLoadedAnew) {
  const auto& [made, how] = GetParam();
  Side side(made, how);
  DeviceOptimizer* device_optimizer = side.device->model->device_optimizer();
  RecordingSink before(side.state.layout), resident(side.state.layout), after(side.state.layout);
  side.run(before, false);
  const ps::Snapshot start = side.server->snapshot();
  ASSERT_TRUE(side.server->settle(*device_optimizer).ok());
  const Outcome outcome = side.run(resident, true);
  const Result<StepNumbers> found = device_optimizer->reduce(outcome.weight, outcome.count);
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE(side.server->step_at(*device_optimizer, found->norm).ok());
  device_optimizer->leave();
  side.server->adopt(start);
  side.run(after, false);
  EXPECT_EQ(after.flat, before.flat);
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceOptimizerTest,
                         testing::Combine(testing::Values(cnn(), batch_norm_and_dropout()),
                                          testing::ValuesIn(kOptimizers)),
                         [](const auto& made) {
                           return std::get<0>(made.param).name + "_" + std::get<1>(made.param).name;
                         });

TEST(DeviceOptimizer, MemoryOfTheHostNeedsNone) {
  const Case made = mlp_with_values();
  EXPECT_EQ((*make_device_model(made.spec, one_thread(), made.dataset, nullptr))->device_optimizer(), nullptr);
}

}  // namespace
}  // namespace motley::torch_adapter
