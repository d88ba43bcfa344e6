// The gradients of the built-in kinds against torch's own autograd on plain modules, for many ways to cut the work.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <numeric>

#include "fixtures.h"
#include "torch/cpu_memory.h"

namespace motley::torch_adapter {
namespace {

constexpr std::uint64_t kSize = 120;
const std::vector<std::int64_t> kImage = {1, 28, 28};

/// torch.nn modules put together the usual way, in the usual order.
struct PlainCnn : torch::nn::Module {
  PlainCnn() {
    conv1 = register_module("conv1", torch::nn::Conv2d(1, 32, 3));
    conv2 = register_module("conv2", torch::nn::Conv2d(32, 64, 3));
    fc1 = register_module("fc1", torch::nn::Linear(1600, 128));
    fc2 = register_module("fc2", torch::nn::Linear(128, 10));
  }
  at::Tensor forward(at::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};

struct Rig {
  explicit Rig(const ModelSpec& spec, const std::shared_ptr<const data::Dataset>& dataset)
      : state(std::move(initial_state(spec)).value()),
        device(driven(spec, one_thread(), dataset, dataset)),
        weights(state.weights) {}

  Result<Outcome> run(Sink& sink, const Stop& stop, const std::vector<std::uint64_t>& indices, std::uint32_t micro,
                      PassKind kind = PassKind::train) {
    Task task;
    task.kind = kind;
    task.indices = indices;
    task.micro_batch = micro;
    return device->loop.run(task, weights, sink, stop);
  }
  InitialState state;
  std::unique_ptr<Driven> device;
  ChunkWeights weights;
};

class CnnTest : public testing::Test {
 protected:
  std::shared_ptr<const data::Dataset> dataset = std::make_shared<FakeDataset>(kSize, kImage, 10);
  ModelSpec spec = spec_of("fashion-cnn", kImage, 10);
  Rig rig{spec, dataset};
  const Layout& layout = rig.state.layout;

  struct Reference {
    std::map<std::string, at::Tensor> gradients;
    double loss_sum;
  };
  Reference reference(const std::vector<std::uint64_t>& indices) const {
    torch::manual_seed(spec.seed);
    PlainCnn model;
    const auto n = static_cast<std::int64_t>(indices.size());
    at::Tensor x = at::empty({n, 1, 28, 28}), y = at::empty({n}, at::kLong);
    dataset->gather(indices, {x.data_ptr<float>(), static_cast<std::size_t>(x.numel())});
    dataset->gather_classes(indices, {y.data_ptr<std::int64_t>(), indices.size()});
    const at::Tensor loss = at::cross_entropy_loss(model.forward(x), y, {}, at::Reduction::Sum);
    loss.backward();
    Reference found{{}, loss.item<double>()};
    for (const auto& parameter : model.named_parameters()) found.gradients[parameter.key()] = parameter.value().grad();
    return found;
  }
  void expect_equal(const std::vector<float>& flat, const Reference& expected) const {
    for (const Placement& place : layout.placements()) {
      const LayoutEntry& entry = layout.entries()[place.entry];
      const at::Tensor plain = expected.gradients.at(entry.name).flatten();
      const double scale = plain.abs().max().item<double>();
      const at::Tensor ours = at::from_blob(const_cast<float*>(flat.data() + place.offset), {plain.numel()});
      EXPECT_LE((ours - plain).abs().max().item<double>(), 1e-6 * scale + 1e-6) << entry.name;
    }
  }
};

TEST_F(CnnTest, LayoutHasTheNamesAndShapesOfTheStateDict) {
  std::vector<std::string> names;
  for (const LayoutEntry& entry : layout.entries()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                             "fc1.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(layout.parameters(), 225034U);
  EXPECT_EQ(layout.entries()[4].shape, (std::vector<std::int64_t>{128, 1600}));
  EXPECT_EQ(difference(layout, rig.device->model->layout()), "");
  EXPECT_FALSE(rig.state.acts_on_groups);
}

TEST_F(CnnTest, InitialWeightsAreTorchsForTheSeed) {
  torch::manual_seed(spec.seed);
  PlainCnn plain;
  const at::Tensor conv1 = plain.conv1->weight.flatten();
  for (const Placement& place : layout.placements()) {
    if (layout.entries()[place.entry].name != "conv1.weight") continue;
    const std::span<const float> small = rig.state.weights[layout.chunks().size() - 1].floats();
    const std::uint64_t at = place.offset - layout.chunks().back().offset;
    for (std::size_t i = 0; i < place.elements; ++i) {
      EXPECT_EQ(small[at + i], conv1[static_cast<std::int64_t>(i)].item<float>());
    }
  }
}

TEST_F(CnnTest, OneRangeInOneMicroBatchEqualsAutograd) {
  const std::vector<std::uint64_t> indices = some_indices(0, 64, kSize);
  RecordingSink sink(layout);
  const Result<Outcome> outcome = rig.run(sink, FixedStop(64), indices, 64);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  const Reference expected = reference(indices);
  expect_equal(sink.flat, expected);
  EXPECT_NEAR(outcome->loss_sum, expected.loss_sum, 1e-6 * expected.loss_sum);
  EXPECT_EQ(outcome->count, 64U);
  EXPECT_EQ(outcome->weight, 64.0);
  EXPECT_EQ(sink.outcome.loss_sum, outcome->loss_sum);
}

TEST_F(CnnTest, UnevenRangesAndMicroBatchesAddUpToTheSameGradient) {
  const std::vector<std::uint64_t> indices = some_indices(0, 61, kSize);
  const Reference expected = reference(indices);
  for (const std::vector<std::uint64_t>& cut : {std::vector<std::uint64_t>{61}, {23, 38}, {7, 41, 13}}) {
    std::vector<float> sum(layout.flat_elements());
    double loss_sum = 0;
    auto at = indices.begin();
    for (const std::uint64_t count : cut) {
      RecordingSink sink(layout);
      const std::vector<std::uint64_t> part(at, at + static_cast<std::ptrdiff_t>(count));
      const Result<Outcome> outcome = rig.run(sink, FixedStop(count), part, 16);
      ASSERT_TRUE(outcome.ok());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sink.flat[i];
      loss_sum += outcome->loss_sum;
      at += static_cast<std::ptrdiff_t>(count);
    }
    expect_equal(sum, expected);
    EXPECT_NEAR(loss_sum, expected.loss_sum, 1e-6 * expected.loss_sum);
  }
}

TEST_F(CnnTest, FromTheEndItComputesTheLastSamples) {
  const std::vector<std::uint64_t> indices = some_indices(0, 61, kSize);
  Task task;
  task.indices = indices;
  task.micro_batch = 16;
  task.from_end = true;
  RecordingSink sink(layout);
  const Result<Outcome> outcome = rig.device->loop.run(task, rig.weights, sink, FixedStop(40));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->count, 40U);
  EXPECT_EQ(outcome->micro_batch, 16U);
  EXPECT_EQ(sink.reported, (std::vector<std::uint64_t>{8, 24, 40}));
  expect_equal(sink.flat, reference({indices.begin() + 21, indices.end()}));
}

TEST_F(CnnTest, EveryChunkIsReadyOnceAfterBegin) {
  RecordingSink sink(layout);
  ASSERT_TRUE(rig.run(sink, FixedStop(40), some_indices(0, 40, kSize), 16).ok());
  EXPECT_EQ(sink.begun, 1);
  EXPECT_FALSE(sink.ready_before_begin);
  for (const int times : sink.times_ready) EXPECT_EQ(times, 1);
  // The backward pass ends with conv1, which lies in the last chunk with all small tensors.
  EXPECT_EQ(sink.order.back(), layout.chunks().size() - 1);
  EXPECT_EQ(sink.reported, (std::vector<std::uint64_t>{8, 24, 40}));  // the odd part first
}

TEST_F(CnnTest, RepeatsAreEqualBitForBit) {
  const std::vector<std::uint64_t> indices = some_indices(3, 50, kSize);
  RecordingSink once(layout), again(layout);
  ASSERT_TRUE(rig.run(once, FixedStop(50), indices, 32).ok());
  ASSERT_TRUE(rig.run(again, FixedStop(50), indices, 32).ok());
  EXPECT_EQ(once.flat, again.flat);
}

TEST_F(CnnTest, EvaluationCountsWhatIsCorrect) {
  const std::vector<std::uint64_t> indices = some_indices(0, 90, kSize);
  RecordingSink sink(layout);
  const Result<Outcome> outcome = rig.run(sink, FixedStop(90), indices, 32, PassKind::evaluate);
  ASSERT_TRUE(outcome.ok());
  torch::manual_seed(spec.seed);
  PlainCnn model;
  at::Tensor x = at::empty({90, 1, 28, 28}), y = at::empty({90}, at::kLong);
  dataset->gather(indices, {x.data_ptr<float>(), static_cast<std::size_t>(x.numel())});
  dataset->gather_classes(indices, {y.data_ptr<std::int64_t>(), 90});
  const at::Tensor output = model.forward(x);
  EXPECT_EQ(static_cast<std::int64_t>(outcome->correct), output.argmax(1).eq(y).sum().item<std::int64_t>());
  const double loss = at::cross_entropy_loss(output, y, {}, at::Reduction::Sum).item<double>();
  EXPECT_NEAR(outcome->loss_sum, loss, 1e-6 * loss);
  EXPECT_TRUE(sink.order.empty());
}

TEST_F(CnnTest, NewWeightsOfTheSameVersionAreNoticed) {
  const std::vector<std::uint64_t> indices = some_indices(0, 32, kSize);
  RecordingSink before(layout), after(layout);
  ASSERT_TRUE(rig.run(before, FixedStop(32), indices, 32).ok());
  std::vector<SharedBytes> moved;
  for (const SharedBytes& chunk : rig.state.weights) {
    std::vector<float> values(chunk.floats().begin(), chunk.floats().end());
    for (float& value : values) value *= 1.5F;
    moved.push_back(SharedBytes::copy_of(std::as_bytes(std::span(values))));
  }
  rig.weights = ChunkWeights(moved);
  ASSERT_TRUE(rig.run(after, FixedStop(32), indices, 32).ok());
  EXPECT_NE(before.outcome.loss_sum, after.outcome.loss_sum);
}

TEST(Mlp, MeanSquaredErrorWeighsTargetElements) {
  const auto dataset = std::make_shared<FakeDataset>(40, std::vector<std::int64_t>{6}, 0, 3);
  ModelSpec spec = spec_of("mlp", {6}, 3);
  spec.loss = "mse";
  spec.hidden = {8};
  Rig rig(spec, dataset);
  RecordingSink sink(rig.state.layout);
  const Result<Outcome> outcome = rig.run(sink, FixedStop(10), some_indices(0, 10, 40), 4);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(outcome->weight, 30.0);
  EXPECT_EQ(outcome->correct, 0U);
  EXPECT_GT(outcome->loss_sum, 0.0);
}

TEST(Mlp, GroupsFollowTheFirstMatchingRule) {
  ModelSpec spec = spec_of("mlp", {6}, 3);
  spec.groups = {{"*.bias", 1}, {"fc?.*", 2}};
  const Result<InitialState> state = initial_state(spec);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->layout.entries()[0].group, 2U);
  EXPECT_EQ(state->layout.entries()[1].group, 1U);
}

TEST(Errors, NameWhatDoesNotFit) {
  const auto dataset = std::make_shared<FakeDataset>(8, std::vector<std::int64_t>{6}, 12);
  const auto code = [&](const ModelSpec& spec, const Options& options) {
    const Result<std::unique_ptr<DeviceModel>> made = make_device_model(spec, options, dataset, nullptr);
    EXPECT_FALSE(made.ok());
    if (made.ok()) return ErrorCode::internal;
    EXPECT_FALSE(made.error().message.empty());
    EXPECT_FALSE(made.error().hint.empty());
    return made.error().code;
  };
  EXPECT_EQ(code(spec_of("resnet", {6}, 12), {}), ErrorCode::usage);
  EXPECT_EQ(code(spec_of("fashion-cnn", {6}, 12), {}), ErrorCode::mismatch);
  EXPECT_EQ(code(spec_of("mlp", {6}, 10), {}), ErrorCode::mismatch);
  Options options;
  options.device = "cuda:99";
  EXPECT_EQ(code(spec_of("mlp", {6}, 12), options), ErrorCode::usage);
  ModelSpec hinge = spec_of("mlp", {6}, 12);
  hinge.loss = "hinge";
  EXPECT_EQ(code(hinge, {}), ErrorCode::usage);
  ModelSpec nonsense = spec_of("torchscript", {6}, 12);
  nonsense.file = SharedBytes::copy_of(std::as_bytes(std::span("no zip archive")));
  EXPECT_EQ(code(nonsense, {}), ErrorCode::input);
}

TEST(CpuMemory, BlocksAreKeptAndUsedAgain) {
  reuse_cpu_memory(std::size_t{1} << 30);
  const void* first = nullptr;
  {
    const at::Tensor large = at::empty({3 << 20}, at::kFloat);
    first = large.const_data_ptr();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
  }
  EXPECT_GE(idle_cpu_memory(), std::size_t{12} << 20);
  const at::Tensor nearly_equal = at::empty({(3 << 20) - 1000}, at::kFloat);
  EXPECT_EQ(nearly_equal.const_data_ptr(), first);
}

TEST(CpuMemory, APeakIsTheMostAtOnce) {
  reuse_cpu_memory(std::size_t{1} << 30);
  fit_cpu_memory();
  const std::size_t before = fit_cpu_memory().used;
  {
    const at::Tensor large = at::empty({3 << 20}, at::kFloat), small = at::empty({1000}, at::kFloat);
  }
  const CpuMemory memory = fit_cpu_memory();
  EXPECT_EQ(memory.used, before);
  EXPECT_GE(memory.peak, before + (std::size_t{12} << 20) + 4000);
  EXPECT_LT(memory.peak, before + (std::size_t{13} << 20));
  EXPECT_EQ(fit_cpu_memory().peak, before);
}

TEST(CpuMemory, BeyondItsLimitItIsFullAndNothingIsLost) {
  fit_cpu_memory();
  const std::size_t used = fit_cpu_memory().used;
  limit_cpu_memory(used + (std::size_t{20} << 20));
  EXPECT_LE(idle_cpu_memory(), std::size_t{20} << 20);
  {
    const at::Tensor fits = at::empty({4 << 20}, at::kFloat);
    EXPECT_THROW(at::empty({2 << 20}, at::kFloat), c10::OutOfMemoryError);
  }
  EXPECT_NO_THROW(at::empty({2 << 20}, at::kFloat));  // in the place of the other, which was kept for reuse
  EXPECT_THROW(at::empty({6 << 20}, at::kFloat), c10::OutOfMemoryError);
  limit_cpu_memory(used + (std::size_t{40} << 20), std::size_t{30} << 20);
  EXPECT_NO_THROW(at::empty({6 << 20}, at::kFloat));
  EXPECT_LE(idle_cpu_memory(), std::size_t{10} << 20);
  limit_cpu_memory(std::numeric_limits<std::size_t>::max());  // as before anybody asked
  EXPECT_NO_THROW(at::empty({10}, at::kFloat));
  fit_cpu_memory();
}

TEST(CpuMemory, AModelSaysWhatItsTensorsTake) {
  const auto dataset = std::make_shared<FakeDataset>(kSize, kImage, 10);
  Rig rig(spec_of("fashion-cnn", kImage, 10), dataset);
  const MemoryUse before = rig.device->model->memory(0);
  EXPECT_GE(before.used, 2 * rig.state.layout.flat_elements() * sizeof(float));  // weights and gradients
  std::vector<std::uint64_t> indices(64);
  std::iota(indices.begin(), indices.end(), 0);
  const auto peak_of = [&](std::uint32_t micro) {
    RecordingSink sink(rig.state.layout);
    EXPECT_TRUE(rig.run(sink, FixedStop(indices.size()), indices, micro));
    return rig.device->model->memory(0).peak;
  };
  const std::uint64_t four = peak_of(4), sixty_four = peak_of(64);
  EXPECT_GT(four, before.used);
  EXPECT_GT(sixty_four, four + (std::uint64_t{60} * 32 * 26 * 26 * sizeof(float)));  // the first convolution's output
  EXPECT_LE(sixty_four, rig.device->model->memory(0).budget);
}

TEST(Devices, TheProcessorIsLast) {
  const std::vector<DeviceInfo> all = devices();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().name, "cpu");
  EXPECT_GT(all.back().threads, 0U);
  EXPECT_GT(all.back().memory_bytes, 0U);
  EXPECT_FALSE(all.back().description.empty());
  EXPECT_FALSE(torch_version().empty());
}

}  // namespace
}  // namespace motley::torch_adapter
