#include "torch_models.h"

#include "torch/torch_adapter.h"

namespace motley::cli {
namespace {

class LibtorchModels final : public TorchModels {
 public:
  std::string version() override { return "libtorch " + torch_adapter::torch_version(); }
  [[nodiscard]] std::string how_to_get() const override { return "make build"; }

  std::vector<runtime::Device> devices() override {
    std::vector<runtime::Device> devices;
    for (torch_adapter::DeviceInfo& info : torch_adapter::devices()) {
      devices.push_back({std::move(info.name), std::move(info.description), info.memory_bytes, info.threads});
    }
    return devices;
  }

  Result<runtime::InitialState> initial_state(const builtin::ModelSpec& spec) override {
    Result<torch_adapter::InitialState> state = torch_adapter::initial_state(spec);
    if (!state) return state.error();
    return runtime::InitialState{std::move(state->layout), std::move(state->weights), std::move(state->frozen),
                                 state->acts_on_groups, state->draws};
  }

  Result<std::unique_ptr<DeviceModel>> make(const builtin::ModelSpec& spec, const runtime::ModelInputs& inputs,
                                            const std::string& device, unsigned threads) override {
    torch_adapter::Options options;
    options.device = device;
    options.threads = threads;
    options.micro_batch = static_cast<std::uint32_t>(inputs.config->micro_batch);
    return torch_adapter::make_device_model(spec, options, inputs.train, inputs.test);
  }

  Status export_torchscript(const builtin::ModelSpec& spec, const Layout& layout,
                            const std::vector<SharedBytes>& weights, const std::map<std::string, SharedBytes>& frozen,
                            std::uint64_t step, const std::string& path) override {
    return torch_adapter::export_torchscript(spec, layout, weights, frozen, step, path);
  }

  Status sample_text(const builtin::ModelSpec& spec, const Layout& layout, const std::vector<SharedBytes>& weights,
                     const builtin::SampleRequest& request, const std::function<bool(char)>& on_byte) override {
    return torch_adapter::sample_text(spec, layout, weights, request, on_byte);
  }
};

}  // namespace

std::shared_ptr<TorchModels> libtorch_models() { return std::make_shared<LibtorchModels>(); }

}  // namespace motley::cli
