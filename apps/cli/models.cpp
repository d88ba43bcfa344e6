#include "models.h"

#include <utility>

#include "machine/processor.h"
#include "softmax/softmax.h"

namespace motley::cli {
namespace {

builtin::ModelSpec described(const config::RunConfig& config, const SharedBytes& file, const data::Dataset* train) {
  builtin::ModelSpec spec;
  spec.kind = config.model_kind;
  spec.file = file;
  spec.loss = config.model_loss;
  if (train != nullptr) {
    spec.sample_shape = train->sample_shape();
    const bool classes = train->target_kind() == data::TargetKind::classes;
    spec.outputs = classes ? train->classes() : train->target_elements();
    spec.targets = classes ? train->target_elements() : 1;
  }
  spec.seed = config.seed;
  spec.hidden = config.model_hidden;
  spec.gpt = {static_cast<std::int64_t>(config.model_block), static_cast<std::int64_t>(config.model_layers),
              static_cast<std::int64_t>(config.model_heads), static_cast<std::int64_t>(config.model_width)};
  if (train == nullptr && config.model_kind == "gpt-mini") {
    spec.sample_shape = {spec.gpt.block};
    spec.targets = config.model_block;
  }
  // The adapter takes the first rule that matches, the configuration the last.
  for (std::size_t i = config.groups.size(); i > 0; --i) {
    spec.groups.push_back({config.groups[i - 1].match, static_cast<std::uint32_t>(i)});
  }
  if (config.grain > 0) spec.group_samples = static_cast<std::uint32_t>(config.grain);
  return spec;
}

class Models final : public runtime::ModelProvider {
 public:
  Models(data::Retrieve retrieve, data::Bring bring, std::shared_ptr<TorchModels> torch)
      : retrieve_(std::move(retrieve)), bring_(std::move(bring)), torch_(std::move(torch)) {}
  [[nodiscard]] std::vector<runtime::Device> devices() const override {
    if (torch_) return torch_->devices();
    return {{"cpu", machine::processor_name(), machine::memory_bytes(), machine::allowed_processors()}};
  }
  [[nodiscard]] data::Retrieve retrieve() const override { return retrieve_; }
  [[nodiscard]] data::Bring bring() const override { return bring_; }
  [[nodiscard]] std::optional<std::vector<std::filesystem::path>> confined_to() const override {
    return torch_ ? torch_->directories() : std::vector<std::filesystem::path>();
  }

  Result<runtime::InitialState> initial_state(const runtime::ModelInputs& inputs) override {
    if (inputs.config->model_kind != "softmax") {
      if (!has_torch()) return no_torch(inputs.config->model_kind, torch_.get());
      return torch_->initial_state(described(*inputs.config, inputs.file, inputs.train.get()));
    }
    Result<std::unique_ptr<softmax::SoftmaxRegression>> model = make_softmax(inputs);
    if (!model) return model.error();
    const std::vector<float> flat = (*model)->initial_weights();
    runtime::InitialState state{(*model)->layout(), {}, {}, false};
    for (const Chunk& chunk : state.layout.chunks()) {
      state.weights.push_back(
          SharedBytes::copy_of(std::as_bytes(std::span(flat).subspan(chunk.offset, chunk.elements))));
    }
    return state;
  }

  Result<std::unique_ptr<DeviceModel>> make(const runtime::ModelInputs& inputs, const std::string& device,
                                            unsigned threads) override {
    if (inputs.config->model_kind != "softmax") {
      if (!has_torch()) return no_torch(inputs.config->model_kind, torch_.get());
      return torch_->make(described(*inputs.config, inputs.file, inputs.train.get()), inputs, device, threads);
    }
    Result<std::unique_ptr<softmax::SoftmaxRegression>> model = make_softmax(inputs);
    if (!model) return model.error();
    return std::unique_ptr<DeviceModel>(std::move(*model));
  }

 private:
  static Result<std::unique_ptr<softmax::SoftmaxRegression>> make_softmax(const runtime::ModelInputs& inputs) {
    return softmax::SoftmaxRegression::make(inputs.train, inputs.test, inputs.config->seed);
  }
  [[nodiscard]] bool has_torch() const { return torch_ && !torch_->version().empty(); }

  data::Retrieve retrieve_;
  data::Bring bring_;
  std::shared_ptr<TorchModels> torch_;
};

}  // namespace

std::unique_ptr<runtime::ModelProvider> make_models(data::Retrieve retrieve, data::Bring bring,
                                                    std::shared_ptr<TorchModels> torch) {
  return std::make_unique<Models>(std::move(retrieve), std::move(bring), std::move(torch));
}

Error no_torch(const std::string& what, const TorchModels* torch) {
  if (torch != nullptr)
    return {ErrorCode::input, what + " needs torch, which this Python has not",
            torch->how_to_get() + "; `softmax` needs none"};
  return {ErrorCode::input, what + ": this motley was built without torch",
          "`make build` builds this with torch; `softmax` needs none"};
}

// Built-in models are made anew for the sizes of the checkpoint's tensors; a TorchScript file knows its own.
builtin::ModelSpec spec_of(const config::RunConfig& config, const SharedBytes& file,
                           const store::CheckpointContent& content) {
  builtin::ModelSpec spec = described(config, file, nullptr);
  for (const LayoutEntry& entry : content.layout.entries()) {
    if (spec.sample_shape.empty() && entry.shape.size() == 2) spec.sample_shape = {entry.shape[1]};
    if (entry.shape.size() == 1) spec.outputs = static_cast<std::uint64_t>(entry.shape[0]);
  }
  if (config.model_kind == "fashion-cnn" || config.model_kind == "mnist-cnn") spec.sample_shape = {1, 28, 28};
  return spec;
}

}  // namespace motley::cli
