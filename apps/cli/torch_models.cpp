// Bridges the run's configuration to adapters/torch.

#include "models.h"
#include "torch/torch_adapter.h"

namespace motley::cli {
namespace {

torch_adapter::ModelSpec spec_of(const config::RunConfig& config, const SharedBytes& file, const data::Dataset* train) {
  torch_adapter::ModelSpec spec;
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

}  // namespace

Result<runtime::InitialState> torch_initial_state(const runtime::ModelInputs& inputs) {
  Result<torch_adapter::InitialState> state =
      torch_adapter::initial_state(spec_of(*inputs.config, inputs.file, inputs.train.get()));
  if (!state) return state.error();
  return runtime::InitialState{std::move(state->layout), std::move(state->weights), std::move(state->frozen),
                               state->acts_on_groups, state->draws};
}

Result<std::unique_ptr<DeviceModel>> torch_model(const runtime::ModelInputs& inputs, const std::string& device,
                                                 unsigned threads) {
  torch_adapter::Options options;
  options.device = device;
  options.threads = threads;
  options.micro_batch = static_cast<std::uint32_t>(inputs.config->micro_batch);
  return torch_adapter::make_device_model(spec_of(*inputs.config, inputs.file, inputs.train.get()), options,
                                          inputs.train, inputs.test);
}

std::vector<runtime::Device> torch_devices() {
  std::vector<runtime::Device> devices;
  for (torch_adapter::DeviceInfo& info : torch_adapter::devices()) {
    devices.push_back({std::move(info.name), std::move(info.description), info.memory_bytes, info.threads});
  }
  return devices;
}

// Built-in models are made anew for the sizes of the checkpoint's tensors; a TorchScript file knows its own. No data
// set is needed.
Status export_torchscript(const config::RunConfig& config, const SharedBytes& file, const Layout& layout,
                          const std::vector<SharedBytes>& weights, const std::map<std::string, SharedBytes>& frozen,
                          std::uint64_t step, const std::string& path) {
  torch_adapter::ModelSpec spec = spec_of(config, file, nullptr);
  for (const LayoutEntry& entry : layout.entries()) {
    if (spec.sample_shape.empty() && entry.shape.size() == 2) spec.sample_shape = {entry.shape[1]};
    if (entry.shape.size() == 1) spec.outputs = static_cast<std::uint64_t>(entry.shape[0]);
  }
  if (config.model_kind == "fashion-cnn" || config.model_kind == "mnist-cnn") spec.sample_shape = {1, 28, 28};
  return torch_adapter::export_torchscript(spec, layout, weights, frozen, step, path);
}

Status sample_text(const config::RunConfig& config, const Layout& layout, const std::vector<SharedBytes>& weights,
                   const SampleOptions& options, const std::function<bool(char)>& on_byte) {
  return torch_adapter::sample_text(spec_of(config, {}, nullptr), layout, weights,
                                    {options.prompt, options.bytes, options.temperature, options.top_k, options.seed},
                                    on_byte);
}

std::string torch_version() { return torch_adapter::torch_version(); }

}  // namespace motley::cli
