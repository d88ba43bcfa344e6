// TorchScript files as models: made by Python as people make them, trained here, exported, loaded again by Python.
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "fixtures.h"

namespace motley::torch_adapter {
namespace {

namespace fs = std::filesystem;

class TorchScriptTest : public testing::Test {
 protected:
  static fs::path models() { return MOTLEY_TORCHSCRIPT_MODELS; }
  static fs::path directory() {
    return fs::path(testing::TempDir()) / ("motley-torchscript-" + std::to_string(getpid()));
  }
  void SetUp() override { fs::create_directories(directory()); }
  void TearDown() override { fs::remove_all(directory()); }
  static int run_python(const std::string& arguments) {
    std::ostringstream command;
    command << "'" << MOTLEY_PYTHON << "' '" << MOTLEY_TORCHSCRIPT_MAKER << "' " << arguments;
    return std::system(command.str().c_str());
  }
  static SharedBytes file(const std::string& name) {
    std::ifstream in(models() / name, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    return SharedBytes::copy_of(std::as_bytes(std::span(text)));
  }
  static ModelSpec script_spec(const std::string& name, std::vector<std::int64_t> shape, std::uint64_t outputs) {
    ModelSpec spec = spec_of("torchscript", std::move(shape), outputs);
    spec.file = file(name);
    spec.group_samples = 8;
    return spec;
  }
  static const LayoutEntry& entry(const Layout& layout, const std::string& name) {
    for (const LayoutEntry& found : layout.entries()) {
      if (found.name == name) return found;
    }
    ADD_FAILURE() << "no entry " << name;
    return layout.entries()[0];
  }
  static std::span<const float> values_of(const Layout& layout, const std::vector<float>& flat,
                                          const std::string& name) {
    for (const Placement& place : layout.placements()) {
      if (layout.entries()[place.entry].name == name) return {flat.data() + place.offset, place.elements};
    }
    ADD_FAILURE() << "no placement of " << name;
    return {};
  }
  static torch::jit::Module loaded(const fs::path& path) { return torch::jit::load(path.string()); }

  struct Ran {
    InitialState state;
    std::vector<float> flat;
    Outcome outcome;
    std::vector<int> times_ready;
  };
  static Ran run(const ModelSpec& spec, const std::shared_ptr<const data::Dataset>& dataset, std::uint64_t count,
                 std::uint64_t version = 0, PassKind kind = PassKind::train) {
    Result<InitialState> state = initial_state(spec);
    if (!state) {
      ADD_FAILURE() << state.error().message;
      return {};
    }
    Result<std::unique_ptr<DeviceModel>> model = make_device_model(spec, one_thread(), dataset, dataset);
    if (!model) {
      ADD_FAILURE() << model.error().message;
      return {};
    }
    EXPECT_EQ(difference((*model)->layout(), state->layout), "");
    ChunkWeights weights(state->weights);
    RecordingSink sink(state->layout);
    const std::vector<std::uint64_t> indices = some_indices(0, count, dataset->size());
    Task task;
    task.kind = kind;
    task.version = version;
    task.indices = indices;
    task.micro_batch = 3;
    const FixedStop stop(count);
    const Result<Outcome> outcome = compute::TaskLoop(**model).run(task, weights, sink, stop);
    if (!outcome) {
      ADD_FAILURE() << outcome.error().message;
      return {};
    }
    return {std::move(*state), sink.flat, *outcome, sink.times_ready};
  }

  std::shared_ptr<const data::Dataset> images =
      std::make_shared<FakeDataset>(40, std::vector<std::int64_t>{1, 8, 8}, 5);
  std::shared_ptr<const data::Dataset> rows = std::make_shared<FakeDataset>(40, std::vector<std::int64_t>{6}, 3);
};

TEST_F(TorchScriptTest, BatchNormIsFoundWithItsMomentum) {
  const Result<InitialState> state = initial_state(script_spec("convnet.pt", {1, 8, 8}, 5));
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_TRUE(state->acts_on_groups);
  const LayoutEntry& mean = entry(state->layout, "features.1.running_mean");
  EXPECT_EQ(mean.kind, TensorKind::running_mean);
  EXPECT_EQ(mean.momentum, 0.1F);
  EXPECT_EQ(entry(state->layout, "features.1.running_var").kind, TensorKind::running_var);
  EXPECT_EQ(entry(state->layout, "features.1.num_batches_tracked").kind, TensorKind::counter);
  EXPECT_EQ(entry(state->layout, "features.0.weight").kind, TensorKind::trained);
  // The trial passes leave nothing behind.
  EXPECT_EQ(state->weights.back().floats()[0], 0.0F);
  EXPECT_EQ(state->weights.back().floats()[Layout::kAlignElements], 1.0F);
}

TEST_F(TorchScriptTest, BatchStatisticsAreSummedOverGroups) {
  const ModelSpec spec = script_spec("convnet.pt", {1, 8, 8}, 5);
  const Ran ran = run(spec, images, 20);
  EXPECT_EQ(ran.outcome.count, 20U);
  for (const int times : ran.times_ready) EXPECT_EQ(times, 1);
  torch::jit::Module model = loaded(models() / "convnet.pt");
  const at::Tensor weight = model.attr("features").toModule().attr("0").toModule().attr("weight").toTensor();
  at::Tensor mean_sum = at::zeros({4}), square_sum = at::zeros({4});
  const std::vector<std::uint64_t> indices = some_indices(0, 20, images->size());
  for (const auto& [first, count] : {std::pair<std::size_t, std::int64_t>(0, 8), {8, 8}, {16, 4}}) {
    at::Tensor x = at::empty({count, 1, 8, 8});
    images->gather(std::span(indices).subspan(first, static_cast<std::size_t>(count)),
                   {x.data_ptr<float>(), static_cast<std::size_t>(x.numel())});
    const at::Tensor h = at::conv2d(x, weight.detach()).transpose(0, 1).flatten(1);
    const at::Tensor mean = h.mean(1), var = h.var(1, /*unbiased=*/true);
    mean_sum += mean * count;
    square_sum += (var + mean * mean) * count;
  }
  const std::span<const float> means = values_of(ran.state.layout, ran.flat, "features.1.running_mean");
  const std::span<const float> squares = values_of(ran.state.layout, ran.flat, "features.1.running_var");
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(means[static_cast<std::size_t>(i)], mean_sum[i].item<float>(), 1e-4);
    EXPECT_NEAR(squares[static_cast<std::size_t>(i)], square_sum[i].item<float>(), 1e-4);
  }
}

TEST_F(TorchScriptTest, DropoutDependsOnVersionAndPositionOnly) {
  const ModelSpec spec = script_spec("convnet.pt", {1, 8, 8}, 5);
  const Ran once = run(spec, images, 16), again = run(spec, images, 16), later = run(spec, images, 16, 1);
  EXPECT_EQ(once.flat, again.flat);
  EXPECT_NE(once.outcome.loss_sum, later.outcome.loss_sum);
}

TEST_F(TorchScriptTest, EvaluationUsesRunningStatistics) {
  const ModelSpec spec = script_spec("convnet.pt", {1, 8, 8}, 5);
  const Ran ran = run(spec, images, 30, 0, PassKind::evaluate);
  torch::jit::Module model = loaded(models() / "convnet.pt");
  model.eval();
  at::Tensor x = at::empty({30, 1, 8, 8}), y = at::empty({30}, at::kLong);
  const std::vector<std::uint64_t> indices = some_indices(0, 30, images->size());
  images->gather(indices, {x.data_ptr<float>(), static_cast<std::size_t>(x.numel())});
  images->gather_classes(indices, {y.data_ptr<std::int64_t>(), 30});
  const at::Tensor output = model.forward({x}).toTensor();
  const double loss = at::cross_entropy_loss(output, y, {}, at::Reduction::Sum).item<double>();
  EXPECT_NEAR(ran.outcome.loss_sum, loss, 1e-5 * loss);
  EXPECT_EQ(static_cast<std::int64_t>(ran.outcome.correct), output.argmax(1).eq(y).sum().item<std::int64_t>());
}

TEST_F(TorchScriptTest, TiedParametersAreOneTensorWithOneGradient) {
  const Ran ran = run(script_spec("tied.pt", {6}, 3), rows, 12);
  const LayoutEntry& alias = entry(ran.state.layout, "second.weight");
  EXPECT_EQ(alias.kind, TensorKind::alias);
  EXPECT_EQ(alias.alias_of, "first.weight");
  EXPECT_FALSE(ran.state.acts_on_groups);
  torch::jit::Module model = loaded(models() / "tied.pt");
  at::Tensor x = at::empty({12, 6}), y = at::empty({12}, at::kLong);
  const std::vector<std::uint64_t> indices = some_indices(0, 12, rows->size());
  rows->gather(indices, {x.data_ptr<float>(), 72});
  rows->gather_classes(indices, {y.data_ptr<std::int64_t>(), 12});
  at::cross_entropy_loss(model.forward({x}).toTensor(), y, {}, at::Reduction::Sum).backward();
  const at::Tensor sum = (model.attr("first").toModule().attr("weight").toTensor().grad() +
                          model.attr("second").toModule().attr("weight").toTensor().grad())
                             .flatten();
  const std::span<const float> ours = values_of(ran.state.layout, ran.flat, "first.weight");
  // Where the file kept the tie, torch's own gradients are already the sum, under both names.
  const bool tied = model.attr("first").toModule().attr("weight").toTensor().is_same(
      model.attr("second").toModule().attr("weight").toTensor());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(ours[i], sum[static_cast<std::int64_t>(i)].item<float>() / (tied ? 2 : 1), 1e-5);
  }
}

TEST_F(TorchScriptTest, WhatGetsNoGradientIsFrozen) {
  const Result<InitialState> state = initial_state(script_spec("frozen.pt", {6}, 3));
  ASSERT_TRUE(state.ok()) << state.error().message;
  for (const char* name : {"base.weight", "base.bias", "unused.weight", "unused.bias", "scale"}) {
    EXPECT_EQ(entry(state->layout, name).kind, TensorKind::frozen) << name;
    EXPECT_NE(entry(state->layout, name).content_hash, 0U) << name;
    EXPECT_TRUE(state->frozen.contains(name)) << name;
  }
  EXPECT_EQ(state->frozen.at("scale").floats()[0], 2.0F);
  EXPECT_EQ(entry(state->layout, "head.weight").kind, TensorKind::trained);
}

TEST_F(TorchScriptTest, ModelsForOtherDataAreRefused) {
  const Result<InitialState> outputs = initial_state(script_spec("tied.pt", {6}, 30));
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::mismatch);
  const Result<InitialState> shape = initial_state(script_spec("tied.pt", {7}, 3));
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.error().code, ErrorCode::mismatch);
  ModelSpec damaged = script_spec("tied.pt", {6}, 3);
  damaged.file = damaged.file.slice(0, damaged.file.size() / 2);
  const Result<InitialState> half = initial_state(damaged);
  ASSERT_FALSE(half.ok());
  EXPECT_EQ(half.error().code, ErrorCode::input);
}

TEST_F(TorchScriptTest, LayersOfTorchAreAllowed) {
  const Result<InitialState> state = initial_state(script_spec("attention.pt", {6}, 3));
  EXPECT_TRUE(state.ok()) << state.error().message;
}

TEST_F(TorchScriptTest, AFileThatDoesMoreThanComputeIsRefused) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"hostile-file.pt", "torch.from_file"}, {"hostile-state.pt", "__setstate__"},
      {"hostile-print.pt", "print"},          {"hostile-getattr.pt", "torch.from_file"},
      {"hostile-ops.pt", "torch.from_file"},  {"hostile-save.pt", "torch.save"},
      {"hostile-unknown.pt", "TorchScript"},  // torch knows no such operator
  };
  for (const auto& [name, found] : files) {
    const Result<InitialState> state = initial_state(script_spec(name, {6}, 3));
    ASSERT_FALSE(state.ok()) << name;
    EXPECT_EQ(state.error().code, ErrorCode::input) << name;
    EXPECT_NE(state.error().message.find(found), std::string::npos) << name << ": " << state.error().message;
    EXPECT_FALSE(fs::exists(models() / "written")) << name;
  }
}

TEST_F(TorchScriptTest, OnlyArchivesAreLoaded) {
  ModelSpec other = script_spec("tied.pt", {6}, 3);
  std::vector<std::byte> bytes(other.file.bytes().begin(), other.file.bytes().end());
  bytes[0] = std::byte{'Q'};
  other.file = SharedBytes::copy_of(bytes);
  const Result<InitialState> state = initial_state(other);
  ASSERT_FALSE(state.ok());
  EXPECT_NE(state.error().message.find("no zip archive"), std::string::npos) << state.error().message;
}

TEST_F(TorchScriptTest, ExportPutsWeightsStatisticsAndCounterBack) {
  const ModelSpec spec = script_spec("convnet.pt", {1, 8, 8}, 5);
  const Result<InitialState> state = initial_state(spec);
  ASSERT_TRUE(state.ok());
  std::vector<SharedBytes> weights;
  for (const SharedBytes& chunk : state->weights) {
    std::vector<float> values(chunk.floats().begin(), chunk.floats().end());
    for (float& value : values) value += 0.5F;
    weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(values))));
  }
  const fs::path path = directory() / "out" / "convnet-export.pt";
  const Status written = export_torchscript(spec, state->layout, weights, state->frozen, 77, path);
  ASSERT_TRUE(written.ok()) << written.error().message;
  const torch::jit::Module before = loaded(models() / "convnet.pt"), after = loaded(path);
  for (const auto& parameter : before.named_parameters()) {
    for (const auto& found : after.named_parameters()) {
      if (found.name != parameter.name) continue;
      EXPECT_TRUE(at::equal(found.value, parameter.value + 0.5F)) << found.name;
    }
  }
  const torch::jit::Module norm = after.attr("features").toModule().attr("1").toModule();
  EXPECT_EQ(norm.attr("running_var").toTensor()[0].item<float>(), 1.5F);
  EXPECT_EQ(norm.attr("num_batches_tracked").toTensor().item<std::int64_t>(), 77);
}

TEST_F(TorchScriptTest, ExportedBuiltinsGiveTheSameResultsForAnyBatch) {
  for (const std::string& kind : {std::string("fashion-cnn"), std::string("mlp")}) {
    const ModelSpec spec = spec_of(kind, {1, 28, 28}, 10);
    const auto dataset = std::make_shared<FakeDataset>(40, spec.sample_shape, 10);
    const Ran ran = run(spec, dataset, 30, 0, PassKind::evaluate);
    const fs::path path = directory() / (kind + ".pt");
    const Status written = export_torchscript(spec, ran.state.layout, ran.state.weights, {}, 0, path);
    ASSERT_TRUE(written.ok()) << written.error().message;
    torch::jit::Module model = loaded(path);
    at::Tensor x = at::empty({30, 1, 28, 28}), y = at::empty({30}, at::kLong);
    const std::vector<std::uint64_t> indices = some_indices(0, 30, dataset->size());
    dataset->gather(indices, {x.data_ptr<float>(), static_cast<std::size_t>(x.numel())});
    dataset->gather_classes(indices, {y.data_ptr<std::int64_t>(), 30});
    const at::Tensor output = model.forward({x}).toTensor();
    const double loss = at::cross_entropy_loss(output, y, {}, at::Reduction::Sum).item<double>();
    EXPECT_NEAR(ran.outcome.loss_sum, loss, 1e-6 * loss);
    EXPECT_EQ(model.forward({x.narrow(0, 0, 7)}).toTensor().size(0), 7);
    std::vector<std::string> names;
    for (const auto& parameter : model.named_parameters()) names.push_back(parameter.name);
    std::vector<std::string> expected;
    for (const LayoutEntry& found : ran.state.layout.entries()) expected.push_back(found.name);
    EXPECT_EQ(names, expected);
  }
}

TEST_F(TorchScriptTest, PythonLoadsWhatIsExported) {
  const ModelSpec spec = spec_of("fashion-cnn", {1, 28, 28}, 10);
  const Result<InitialState> state = initial_state(spec);
  ASSERT_TRUE(state.ok());
  const fs::path path = directory() / "for-python.pt", said = directory() / "said.txt";
  ASSERT_TRUE(export_torchscript(spec, state->layout, state->weights, {}, 0, path).ok());
  ASSERT_EQ(run_python("--check " + path.string() + " > " + said.string()), 0);
  std::ifstream in(said);
  std::string names, shape;
  std::getline(in, names);
  std::getline(in, shape);
  EXPECT_EQ(names, "conv1.weight conv1.bias conv2.weight conv2.bias fc1.weight fc1.bias fc2.weight fc2.bias");
  EXPECT_EQ(shape, "(3, 10)");
}

TEST_F(TorchScriptTest, ExportRefusesWeightsOfAnotherModel) {
  const Result<InitialState> state = initial_state(spec_of("mlp", {6}, 3));
  ASSERT_TRUE(state.ok());
  const Status written =
      export_torchscript(spec_of("mlp", {6}, 4), state->layout, state->weights, {}, 0, directory() / "wrong.pt");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::mismatch);
}

}  // namespace
}  // namespace motley::torch_adapter
