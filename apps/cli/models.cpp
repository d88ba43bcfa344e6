#include "models.h"

#include <thread>
#include <utility>

#include "softmax/softmax.h"

namespace motley::cli {

#ifdef MOTLEY_WITH_TORCH
Result<runtime::InitialState> torch_initial_state(const runtime::ModelInputs& inputs);
Result<std::unique_ptr<DeviceModel>> torch_model(const runtime::ModelInputs& inputs, const std::string& device,
                                                 unsigned threads);
std::vector<runtime::Device> torch_devices();
#else
namespace {
Error no_torch(const std::string& what) {
  return {
      ErrorCode::input, what + ": this motley was built without torch",
      "motley train SCRIPT.py, which trains with the torch of Python; or `make build`, which builds this with torch; "
      "`softmax` needs none"};
}
Result<runtime::InitialState> torch_initial_state(const runtime::ModelInputs& inputs) {
  return no_torch(inputs.config->model_kind);
}
Result<std::unique_ptr<DeviceModel>> torch_model(const runtime::ModelInputs& inputs, const std::string&, unsigned) {
  return no_torch(inputs.config->model_kind);
}
std::vector<runtime::Device> torch_devices() { return {{"cpu", "processor", 0, std::thread::hardware_concurrency()}}; }
}  // namespace
std::string torch_version() { return {}; }
Status export_torchscript(const config::RunConfig& config, const SharedBytes&, const Layout&,
                          const std::vector<SharedBytes>&, const std::map<std::string, SharedBytes>&, std::uint64_t,
                          const std::string&) {
  return no_torch("TorchScript export of " + config.model_kind);
}
Status sample_text(const config::RunConfig& config, const Layout&, const std::vector<SharedBytes>&,
                   const SampleOptions&, const std::function<bool(char)>&) {
  return no_torch(config.model_kind);
}
#endif

namespace {

class Models final : public runtime::ModelProvider {
 public:
  explicit Models(data::Retrieve retrieve) : retrieve_(std::move(retrieve)) {}
  [[nodiscard]] std::vector<runtime::Device> devices() const override { return torch_devices(); }
  [[nodiscard]] data::Retrieve retrieve() const override { return retrieve_; }
  [[nodiscard]] bool confines() const override { return true; }

  Result<runtime::InitialState> initial_state(const runtime::ModelInputs& inputs) override {
    if (inputs.config->model_kind != "softmax") return torch_initial_state(inputs);
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
    if (inputs.config->model_kind != "softmax") return torch_model(inputs, device, threads);
    Result<std::unique_ptr<softmax::SoftmaxRegression>> model = make_softmax(inputs);
    if (!model) return model.error();
    return std::unique_ptr<DeviceModel>(std::move(*model));
  }

 private:
  static Result<std::unique_ptr<softmax::SoftmaxRegression>> make_softmax(const runtime::ModelInputs& inputs) {
    return softmax::SoftmaxRegression::make(inputs.train, inputs.test, inputs.config->seed);
  }
  data::Retrieve retrieve_;
};

}  // namespace

std::unique_ptr<runtime::ModelProvider> make_models(data::Retrieve retrieve) {
  return std::make_unique<Models>(std::move(retrieve));
}

}  // namespace motley::cli
