// Workers of one process share torch's generators; what one draws must not depend on the others.
#include "torch/generators.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "fixtures.h"

namespace motley::torch_adapter {
namespace {

constexpr std::uint64_t kGenerated = 64;

TEST(Generators, TheSeedAloneDecidesWhatIsDrawn) {
  const auto draw = [](std::uint64_t seed) {
    const Seeded seeded(at::kCPU, seed);
    return at::rand({8});
  };
  const at::Tensor first = draw(7);
  EXPECT_FALSE(first.equal(draw(8)));
  EXPECT_TRUE(first.equal(draw(7)));
  torch::manual_seed(7);
  EXPECT_TRUE(first.equal(at::rand({8})));
}

/// The gradients of a few steps of a model with dropout.
std::vector<std::vector<float>> several_steps(const ModelSpec& spec, const std::shared_ptr<const data::Dataset>& data) {
  std::vector<std::vector<float>> found;
  const Result<InitialState> state = initial_state(spec);
  EXPECT_TRUE(state.ok());
  if (!state) return found;
  const std::unique_ptr<Driven> device = driven(spec, one_thread(), data, nullptr);
  ChunkWeights weights(state->weights);
  const std::vector<std::uint64_t> indices = some_indices(0, kGenerated, kGenerated);
  for (std::uint64_t version = 0; version < 20; ++version) {
    RecordingSink sink(state->layout);
    Task task;
    task.version = version;
    task.indices = indices;
    task.micro_batch = spec.group_samples;
    EXPECT_TRUE(device->loop.run(task, weights, sink, FixedStop(kGenerated)).ok());
    found.push_back(sink.flat);
  }
  return found;
}

const std::vector<std::int64_t> kShape = {1, 8, 8};

ModelSpec model_with_dropout() {
  ModelSpec spec = spec_of("torchscript", kShape, 5);
  std::ifstream in(MOTLEY_TORCHSCRIPT_MODELS "/convnet.pt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  spec.file = SharedBytes::copy_of(std::as_bytes(std::span(text)));
  spec.group_samples = 8;
  return spec;
}

// Whole groups, each with the mask of its first position, whichever end the loop starts from.
TEST(Generators, GroupsAreTheSameFromTheEnd) {
  const auto data = std::make_shared<FakeDataset>(kGenerated, kShape, 5);
  const ModelSpec spec = model_with_dropout();
  const Result<InitialState> state = initial_state(spec);
  ASSERT_TRUE(state.ok());
  const std::unique_ptr<Driven> device = driven(spec, one_thread(), data, nullptr);
  ChunkWeights weights(state->weights);
  const std::vector<std::uint64_t> indices = some_indices(0, 37, kGenerated);  // the last group of a pass may be short
  const std::span<const std::uint64_t> tail = std::span(indices).subspan(16);
  RecordingSink upwards(state->layout), downwards(state->layout);
  Task task{.version = 3, .indices = tail, .first = 16, .micro_batch = 8, .seed = 7};
  ASSERT_TRUE(device->loop.run(task, weights, upwards, FixedStop(21)).ok());
  task = {.version = 3, .indices = indices, .first = 0, .micro_batch = 8, .seed = 7, .from_end = true};
  ASSERT_TRUE(device->loop.run(task, weights, downwards, FixedStop(22)).ok());
  EXPECT_EQ(downwards.outcome.count, 21U) << "a limit inside of a group leaves the group out";
  EXPECT_EQ(downwards.reported, (std::vector<std::uint64_t>{5, 13, 21}));
  EXPECT_NEAR(downwards.outcome.loss_sum, upwards.outcome.loss_sum, 1e-6);
  for (std::size_t i = 0; i < upwards.flat.size(); ++i) ASSERT_NEAR(downwards.flat[i], upwards.flat[i], 1e-4);
}

TEST(Generators, DropoutOfTwoWorkersAtOnceIsThatOfOne) {
  const auto data = std::make_shared<FakeDataset>(kGenerated, kShape, 5);
  const ModelSpec spec = model_with_dropout();
  const auto alone = several_steps(spec, data);
  std::vector<std::vector<float>> left, right;
  {
    const std::jthread other([&] { left = several_steps(spec, data); });
    right = several_steps(spec, data);
  }
  EXPECT_EQ(left, alone);
  EXPECT_EQ(right, alone);
}

}  // namespace
}  // namespace motley::torch_adapter
