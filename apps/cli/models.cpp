#include "models.h"

#include <utility>

#include "machine/processor.h"
#include "machine/spare_memory.h"
#include "softmax/arguments.h"
#include "softmax/softmax.h"

namespace motley::cli {
namespace {

class SoftmaxModels final : public runtime::ModelProvider {
 public:
  [[nodiscard]] std::vector<runtime::Device> devices() const override {
    return {{"cpu", machine::processor_name(), machine::memory_bytes(), machine::allowed_processors()}};
  }
  [[nodiscard]] bool is_confined() const override { return true; }

  Result<runtime::ModelInputs> load(const config::RunConfig& config) override {
    if (config.model_kind != config::kSoftmaxKind) {
      return Error{ErrorCode::mismatch, "this run trains the model of a Python script", "motley join TOKEN SCRIPT.py"};
    }
    const Result<softmax::Arguments> asked = softmax::parse_arguments(config.model_arguments);
    if (!asked) return asked.error();
    // What is hashed is there twice meanwhile.
    const std::uint64_t bytes = 2 * (asked->train.samples + asked->test) * asked->train.features * sizeof(float);
    Status room = machine::check_memory_for(bytes, "softmax: the samples", "ask for fewer: samples=4096 features=32");
    if (!room) return room.error();
    runtime::ModelInputs inputs{.config = &config};
    inputs.train = std::make_shared<softmax::Blobs>(asked->train, softmax::Part::train);
    if (config.model_tested && asked->test > 0)
      inputs.test = std::make_shared<softmax::Blobs>(asked->test_sizes(), softmax::Part::test);
    return inputs;
  }

  Result<runtime::InitialState> initial_state(const runtime::ModelInputs& inputs) override {
    Result<std::unique_ptr<softmax::SoftmaxRegression>> model = make_model(inputs);
    if (!model) return model.error();
    Result<ps::OptimizerSpec> optimizer = optimizer_of(inputs);
    if (!optimizer) return optimizer.error();
    const std::vector<float> flat = (*model)->initial_weights();
    runtime::InitialState state{.layout = (*model)->layout(), .optimizer = std::move(*optimizer)};
    for (const Chunk& chunk : state.layout.chunks()) {
      state.weights.push_back(
          SharedBytes::copy_of(std::as_bytes(std::span(flat).subspan(chunk.offset, chunk.elements))));
    }
    return state;
  }

  Result<std::unique_ptr<DeviceModel>> make(const runtime::ModelInputs& inputs, const std::string& /*device*/,
                                            unsigned /*threads*/) override {
    Result<std::unique_ptr<softmax::SoftmaxRegression>> model = make_model(inputs);
    if (!model) return model.error();
    return std::unique_ptr<DeviceModel>(std::move(*model));
  }

  Result<runtime::LocalOptimizer> local_optimizer(const runtime::ModelInputs& inputs) override {
    Result<ps::OptimizerSpec> optimizer = optimizer_of(inputs);
    if (!optimizer) return optimizer.error();
    return runtime::LocalOptimizer{.optimizer = std::move(*optimizer)};
  }

 private:
  // REQUIRES inputs of load().
  static Result<std::unique_ptr<softmax::SoftmaxRegression>> make_model(const runtime::ModelInputs& inputs) {
    const auto blobs = [](const std::shared_ptr<const data::Dataset>& set) {
      return std::static_pointer_cast<const softmax::Blobs>(set);
    };
    return softmax::SoftmaxRegression::make(blobs(inputs.train), blobs(inputs.test), inputs.config->seed);
  }
  static Result<ps::OptimizerSpec> optimizer_of(const runtime::ModelInputs& inputs) {
    const Result<softmax::Arguments> asked = softmax::parse_arguments(inputs.config->model_arguments);
    if (!asked) return asked.error();
    ps::OptimizerSpec spec;
    spec.kind = asked->optimizer == "adam" ? ps::OptimizerKind::adam : ps::OptimizerKind::sgd;
    spec.groups.push_back({.lr = asked->lr, .momentum = asked->momentum});
    return spec;
  }
};

}  // namespace

std::unique_ptr<runtime::ModelProvider> make_models() { return std::make_unique<SoftmaxModels>(); }

}  // namespace motley::cli
