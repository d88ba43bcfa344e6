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

constexpr std::uint64_t kSize = 64;

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
  const Result<std::unique_ptr<Computation>> computation = make_computation(spec, one_thread(), data, nullptr);
  EXPECT_TRUE(state.ok() && computation.ok());
  if (!state || !computation) return found;
  ChunkWeights weights(state->weights);
  const std::vector<std::uint64_t> indices = some_indices(0, kSize, kSize);
  for (std::uint64_t version = 0; version < 20; ++version) {
    RecordingSink sink(state->layout);
    Task task;
    task.version = version;
    task.indices = indices;
    task.micro_batch = spec.group_samples;
    EXPECT_TRUE((*computation)->run(task, weights, sink, FixedStop(kSize)).ok());
    found.push_back(sink.flat);
  }
  return found;
}

TEST(Generators, DropoutOfTwoWorkersAtOnceIsThatOfOne) {
  const std::vector<std::int64_t> shape = {1, 8, 8};
  const auto data = std::make_shared<FakeDataset>(kSize, shape, 5);
  ModelSpec spec = spec_of("torchscript", shape, 5);
  std::ifstream in(MOTLEY_TORCHSCRIPT_MODELS "/convnet.pt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  spec.file = SharedBytes::copy_of(std::as_bytes(std::span(text)));
  spec.group_samples = 8;
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
