#pragma once
// A program's model as a provider of models. Its runs are of the kind of scripts: model, data and optimizer are the
// program's own, and a Python script of the same model may join.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "motley/model.h"
#include "runtime/model_provider.h"

namespace motley::api {

/// Any thread: it calls the model one at a time.
class Provider final : public runtime::ModelProvider {
 public:
  explicit Provider(Model& model) : model_(model) {}

  /// What a head of this model begins with, before settings.
  [[nodiscard]] config::RunConfig config() const;

  [[nodiscard]] std::vector<runtime::Device> devices() const override;
  /// Errors: mismatch, where the configuration is of another program's run.
  Result<runtime::ModelInputs> load(const config::RunConfig& config) override;
  Result<runtime::InitialState> initial_state(const runtime::ModelInputs& inputs) override;
  Result<std::unique_ptr<DeviceModel>> make(const runtime::ModelInputs& inputs, const std::string& device,
                                            unsigned threads) override;
  Result<runtime::LocalOptimizer> local_optimizer(const runtime::ModelInputs& inputs) override;

 private:
  Result<std::vector<SharedBytes>> initial_chunks();

  Model& model_;
  mutable std::mutex mutex_;
};

}  // namespace motley::api
