// The language model: its layout, its work cut in many ways, its script and the text it writes.
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "fixtures.h"
#include "torch/model.h"

namespace motley::torch_adapter {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBlock = 16;
constexpr std::uint64_t kWindows = 40;

class GptTest : public testing::Test {
 protected:
  GptTest() {
    fs::create_directories(directory);
    Philox random(3);
    std::ofstream text(directory / "text.txt", std::ios::binary);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(kWindows) * kBlock + 1; ++i) {
      text.put(static_cast<char>(random.below(256)));
    }
    text.close();
    data::OpenOptions options;
    options.block = kBlock;
    dataset = std::move(data::open_dataset((directory / "text.txt").string(), "train", options)).value();
    spec = spec_of("gpt-mini", {kBlock}, 256);
    spec.targets = kBlock;
    spec.gpt = {kBlock, 2, 4, 32};
    state = std::move(initial_state(spec)).value();
  }
  ~GptTest() override { fs::remove_all(directory); }

  struct Ran {
    std::vector<float> flat;
    Outcome outcome;
  };
  Ran run(const std::vector<std::uint64_t>& indices, std::uint32_t micro, PassKind kind = PassKind::train,
          bool staged = false) {
    Options options = one_thread();
    options.staged = staged;
    const std::unique_ptr<Driven> device = driven(spec, options, dataset, dataset);
    ChunkWeights weights(state.weights);
    RecordingSink sink(state.layout);
    Task task;
    task.kind = kind;
    task.indices = indices;
    task.micro_batch = micro;
    const FixedStop stop(indices.size());
    const Result<Outcome> outcome = device->loop.run(task, weights, sink, stop);
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
    return {sink.flat, *outcome};
  }
  /// Samples and targets as tensors.
  std::pair<at::Tensor, at::Tensor> tensors(const std::vector<std::uint64_t>& indices) const {
    const auto n = static_cast<std::int64_t>(indices.size());
    at::Tensor x = at::empty({n, kBlock}), y = at::empty({n, kBlock}, at::kLong);
    dataset->gather(indices, {x.data_ptr<float>(), static_cast<std::size_t>(x.numel())});
    dataset->gather_classes(indices, {y.data_ptr<std::int64_t>(), static_cast<std::size_t>(y.numel())});
    return {x, y};
  }
  std::string sample(const SampleRequest& request) const {
    std::string text;
    const Status status = sample_text(spec, state.layout, state.weights, request, [&](char byte) {
      text += byte;
      return true;
    });
    EXPECT_TRUE(status) << status.error().message;
    return text;
  }

  fs::path directory = fs::path(testing::TempDir()) / ("motley-gpt-" + std::to_string(getpid()));
  std::shared_ptr<const data::Dataset> dataset;
  ModelSpec spec;
  InitialState state;
};

TEST_F(GptTest, LayoutHasTheNamesOfNanoGpt) {
  std::vector<std::string> names;
  for (const LayoutEntry& entry : state.layout.entries()) names.push_back(entry.name);
  ASSERT_EQ(names.size(), 2U + 2 * 12 + 2 + 1);
  EXPECT_EQ(names[0], "transformer.wte.weight");
  EXPECT_EQ(names[1], "transformer.wpe.weight");
  EXPECT_EQ(names[2], "transformer.h.0.ln_1.weight");
  EXPECT_EQ(names[4], "transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(names[25], "transformer.h.1.mlp.c_proj.bias");
  EXPECT_EQ(names[27], "transformer.ln_f.bias");
  const LayoutEntry& head = state.layout.entries().back();
  EXPECT_EQ(head.name, "lm_head.weight");
  EXPECT_EQ(head.kind, TensorKind::alias);
  EXPECT_EQ(head.alias_of, "transformer.wte.weight");
  EXPECT_EQ(state.layout.parameters(), (256U + 16) * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 64);
  EXPECT_FALSE(state.acts_on_groups);
}

TEST_F(GptTest, InitialWeightsFollowTheSeedAndTheDepth) {
  const auto weights = [](const ModelSpec& of, const std::string& name) {
    const Result<std::unique_ptr<Model>> model = make_model(of);
    for (const NamedTensor& named : (*model)->tensors()) {
      if (named.name == name) return named.tensor.detach();
    }
    return at::Tensor();
  };
  const at::Tensor inner = weights(spec, "transformer.h.1.mlp.c_fc.weight");
  EXPECT_NEAR(inner.std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(weights(spec, "transformer.h.1.mlp.c_proj.weight").std().item<double>(), 0.02 / std::sqrt(4.0), 0.0005);
  EXPECT_TRUE(inner.equal(weights(spec, "transformer.h.1.mlp.c_fc.weight")));
  ModelSpec other = spec;
  other.seed = 6;
  EXPECT_FALSE(inner.equal(weights(other, "transformer.h.1.mlp.c_fc.weight")));
}

TEST_F(GptTest, EachByteCounts) {
  const std::vector<std::uint64_t> indices = some_indices(0, 10, kWindows);
  const Ran whole = run(indices, 10);
  EXPECT_EQ(whole.outcome.count, 10U);
  EXPECT_EQ(whole.outcome.weight, 10.0 * kBlock);
  EXPECT_NEAR(whole.outcome.loss_sum / whole.outcome.weight, std::log(256.0), 0.1);

  const auto [x, y] = tensors(indices);
  const Result<std::unique_ptr<Model>> model = make_model(spec);
  const at::AutoGradMode grad(true);
  const at::Tensor logits = (*model)->forward(x);
  const at::Tensor loss = at::cross_entropy_loss(logits.view({-1, 256}), y.flatten(), {}, at::Reduction::Sum);
  loss.backward();
  EXPECT_NEAR(whole.outcome.loss_sum, loss.item<double>(), 1e-6 * loss.item<double>());
  for (const Placement& place : state.layout.placements()) {
    const at::Tensor plain = (*model)->tensors()[place.entry].tensor.grad().flatten();
    const at::Tensor ours = at::from_blob(const_cast<float*>(whole.flat.data() + place.offset), {plain.numel()});
    EXPECT_LE((ours - plain).abs().max().item<double>(), 1e-5 * plain.abs().max().item<double>() + 1e-6);
  }
  const Ran evaluated = run(indices, 4, PassKind::evaluate);
  EXPECT_EQ(static_cast<std::int64_t>(evaluated.outcome.correct), logits.argmax(-1).eq(y).sum().item<std::int64_t>());
  EXPECT_EQ(evaluated.outcome.weight, 10.0 * kBlock);
}

TEST_F(GptTest, MicroBatchesAddUp) {
  const std::vector<std::uint64_t> indices = some_indices(0, 11, kWindows);
  const Ran whole = run(indices, 11), cut = run(indices, 3);
  EXPECT_NEAR(whole.outcome.loss_sum, cut.outcome.loss_sum, 1e-6 * whole.outcome.loss_sum);
  float worst = 0;
  for (std::size_t i = 0; i < whole.flat.size(); ++i) worst = std::max(worst, std::abs(whole.flat[i] - cut.flat[i]));
  EXPECT_LE(worst, 1e-4F);
}

TEST_F(GptTest, ThroughCopiesAsOnAnAcceleratorItIsTheSame) {
  const std::vector<std::uint64_t> indices = some_indices(0, 9, kWindows);
  const Ran plain = run(indices, 4), staged = run(indices, 4, PassKind::train, true);
  EXPECT_EQ(plain.flat, staged.flat);
  EXPECT_EQ(plain.outcome.loss_sum, staged.outcome.loss_sum);
}

TEST_F(GptTest, FewerSamplesOfManyTargetsGoAtOnce) {
  const auto recommended = [&](std::uint64_t targets) {
    ModelSpec longer = spec;
    longer.targets = targets;
    longer.gpt.block = static_cast<std::int64_t>(targets);
    longer.sample_shape = {longer.gpt.block};
    return (*make_device_model(longer, one_thread(), nullptr, nullptr))->capabilities().micro_batch;
  };
  EXPECT_EQ(recommended(16), 256U);
  EXPECT_EQ(recommended(256), 16U);
  EXPECT_EQ(recommended(8192), 1U);
}

TEST_F(GptTest, TheScriptComputesTheSame) {
  const fs::path file = directory / "gpt.pt";
  const Status exported = export_torchscript(spec, state.layout, state.weights, {}, 0, file);
  ASSERT_TRUE(exported) << exported.error().message;
  torch::jit::Module script = torch::jit::load(file.string());
  const at::NoGradGuard no_grad;
  const Result<std::unique_ptr<Model>> model = make_model(spec);
  const at::Tensor x = tensors(some_indices(0, 5, kWindows)).first;
  for (const std::int64_t length : {kBlock, std::int64_t{5}}) {
    const at::Tensor part = x.narrow(1, 0, length);
    const at::Tensor plain = (*model)->forward(part), scripted = script.forward({part}).toTensor();
    EXPECT_LE((plain - scripted).abs().max().item<double>(), 1e-6);
  }
  const at::Tensor head = script.attr("lm_head").toModule().attr("weight").toTensor();
  const torch::jit::Module embedding = script.attr("transformer").toModule().attr("wte").toModule();
  EXPECT_EQ(head.const_data_ptr(), embedding.attr("weight").toTensor().const_data_ptr());  // still tied
}

TEST_F(GptTest, NoByteSeesTheNext) {
  const at::NoGradGuard no_grad;
  const Result<std::unique_ptr<Model>> model = make_model(spec);
  const at::Tensor x = tensors({0}).first;
  at::Tensor changed = x.clone();
  changed[0][kBlock - 1] = 255 - changed[0][kBlock - 1];
  const at::Tensor before = (*model)->forward(x), after = (*model)->forward(changed);
  EXPECT_TRUE(before.narrow(1, 0, kBlock - 1).equal(after.narrow(1, 0, kBlock - 1)));
  EXPECT_FALSE(before.equal(after));
}

TEST_F(GptTest, SamplesFollowTheSeed) {
  SampleRequest request{"Once upon a time there was more than a block", 20, 1.0, 0, 7};
  const std::string once = sample(request);
  EXPECT_EQ(once.size(), 20U);
  EXPECT_EQ(sample(request), once);
  request.seed = 8;
  EXPECT_NE(sample(request), once);
}

TEST_F(GptTest, TheLikeliestByteNeedsNoLuck) {
  const std::string greedy = sample({"a", 30, 0, 0, 1});
  EXPECT_EQ(sample({"a", 30, 0, 0, 2}), greedy);
  EXPECT_EQ(sample({"a", 30, 5.0, 1, 3}), greedy);
}

TEST_F(GptTest, SamplingEndsWhenAsked) {
  int bytes = 0;
  EXPECT_TRUE(sample_text(spec, state.layout, state.weights, {"a", 30, 0, 0, 1}, [&](char) { return ++bytes < 4; }));
  EXPECT_EQ(bytes, 4);
}

TEST_F(GptTest, WhatDoesNotFitIsRefused) {
  ModelSpec uneven = spec;
  uneven.gpt.heads = 5;
  EXPECT_EQ(initial_state(uneven).error().code, ErrorCode::input);
  EXPECT_EQ(initial_state(spec_of("gpt-mini", {1, 28, 28}, 10)).error().code, ErrorCode::mismatch);
  ModelSpec wide = spec;
  wide.gpt.width = 64;
  EXPECT_EQ(sample_text(wide, state.layout, state.weights, {"a", 1, 0, 0, 1}, [](char) { return true; }).error().code,
            ErrorCode::mismatch);
  ModelSpec mlp = spec;
  mlp.kind = "mlp";
  EXPECT_EQ(initial_state(mlp).error().code, ErrorCode::mismatch);
}

}  // namespace
}  // namespace motley::torch_adapter
