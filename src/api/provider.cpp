#include "api/provider.h"

#include <utility>

#include "base/shell.h"
#include "data/dataset.h"
#include "machine/processor.h"
#include "runtime/inputs.h"
#include "tensor/flat_chunks.h"

namespace motley {

std::vector<Device> Model::devices() const {
  return {{"cpu", machine::processor_name(), machine::memory_bytes(), machine::allowed_processors()}};
}

}  // namespace motley

namespace motley::api {
namespace {

/// Samples that the program alone can read.
class OwnSamples final : public data::Dataset {
 public:
  explicit OwnSamples(const Samples& samples) : size_(samples.size) {
    fingerprint_ = std::to_string(samples.size) + " samples of " + samples.sample;
    if (samples.hash != 0) fingerprint_ += "; hash: " + std::to_string(samples.hash);
  }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& fingerprint() const override { return fingerprint_; }

 private:
  std::uint64_t size_;
  std::string fingerprint_;
};

ps::OptimizerSpec optimizer_of(const Optimizer& own) {
  ps::OptimizerSpec spec{.kind = own.kind, .groups = {}};
  for (const OptimizerGroup& group : own.groups)
    spec.groups.push_back({group.lr, group.momentum, group.dampening, group.nesterov, group.weight_decay, group.beta1,
                           group.beta2, group.eps});
  return spec;
}

ps::ScheduleSpec schedule_of(const Optimizer& own) {
  if (own.factors.empty()) return {};
  auto table = std::make_shared<ps::ScheduleTable>();
  table->groups = own.groups.size();
  for (const double factor : own.factors) {
    for (const OptimizerGroup& group : own.groups)
      table->rates.push_back({group.lr * factor, group.momentum, group.beta1, group.beta2});
  }
  ps::ScheduleSpec spec{.kind = ps::ScheduleKind::table};
  spec.table = std::move(table);
  return spec;
}

}  // namespace

config::RunConfig Provider::config() const {
  const std::lock_guard lock(mutex_);
  config::RunConfig config;
  config.model_kind = config::kScriptKind;
  config.model_arguments = model_.arguments();
  config.model_tested = model_.test_samples().size > 0;
  return config;
}

std::vector<runtime::Device> Provider::devices() const {
  const std::lock_guard lock(mutex_);
  std::vector<runtime::Device> devices;
  for (const Device& device : model_.devices())
    devices.push_back({device.name, device.description, device.memory_bytes, device.threads});
  return devices;
}

Result<runtime::ModelInputs> Provider::load(const config::RunConfig& config) {
  const std::lock_guard lock(mutex_);
  if (config.model_kind != config::kScriptKind) {
    return Error{ErrorCode::mismatch, "this program has a model of its own, but the run trains " + config.model_kind,
                 "motley join ADDRESS CODE"};
  }
  if (const std::vector<std::string> own = model_.arguments(); !runtime::same_arguments(config.model_arguments, own)) {
    return Error{
        ErrorCode::mismatch,
        "the head's arguments are '" + in_shell(config.model_arguments) + "', this machine's '" + in_shell(own) + "'",
        "start this program with the head's arguments"};
  }
  const Samples train = model_.train_samples(), test = model_.test_samples();
  if (train.size == 0) return Error{ErrorCode::input, "the training set has no samples", ""};
  if (config.model_tested && test.size == 0) {
    return Error{ErrorCode::mismatch, "the head evaluates on test samples, and this machine has none",
                 "give the program the same test set on all machines"};
  }
  runtime::ModelInputs inputs;
  inputs.config = &config;
  inputs.train = std::make_shared<OwnSamples>(train);
  if (config.model_tested) inputs.test = std::make_shared<OwnSamples>(test);
  return inputs;
}

Result<runtime::InitialState> Provider::initial_state(const runtime::ModelInputs&) {
  const std::lock_guard lock(mutex_);
  const Optimizer own = model_.optimizer();
  if (own.kind == OptimizerKind::outside || own.groups.empty()) {
    return Error{ErrorCode::input, "Model::optimizer(): expected sgd, adam or adamw with a group at the least", ""};
  }
  for (const LayoutEntry& entry : model_.layout().entries()) {
    if (entry.kind == TensorKind::frozen)
      return Error{ErrorCode::input, "Model::layout(): frozen entries are not supported, found " + entry.name,
                   "leave it out: the model alone knows it"};
  }
  Result<std::vector<SharedBytes>> weights = initial_chunks();
  if (!weights) return std::move(weights).error();
  runtime::InitialState state;
  state.layout = model_.layout();
  state.weights = std::move(*weights);
  state.acts_on_groups = model_.acts_on_groups();
  state.draws = model_.draws();
  state.optimizer = optimizer_of(own);
  state.schedule = schedule_of(own);
  state.scores = model_.scores();
  return state;
}

Result<std::vector<SharedBytes>> Provider::initial_chunks() {
  Result<std::vector<float>> flat = model_.initial_weights();
  if (!flat) return std::move(flat).error();
  const std::uint64_t elements = model_.layout().flat_elements();
  if (flat->size() != elements) {
    return Error{ErrorCode::input,
                 "Model::initial_weights(): expected layout().flat_elements() numbers, which are " +
                     std::to_string(elements) + ", found " + std::to_string(flat->size()),
                 ""};
  }
  return copy_chunks(model_.layout(), *flat, true);
}

Result<std::unique_ptr<DeviceModel>> Provider::make(const runtime::ModelInputs&, const std::string& device,
                                                    unsigned threads) {
  const std::lock_guard lock(mutex_);
  return model_.device(device, threads);
}

Result<runtime::LocalOptimizer> Provider::local_optimizer(const runtime::ModelInputs&) {
  const std::lock_guard lock(mutex_);
  const Optimizer own = model_.optimizer();
  return runtime::LocalOptimizer{.optimizer = optimizer_of(own), .outside = {}, .schedule = schedule_of(own)};
}

}  // namespace motley::api
