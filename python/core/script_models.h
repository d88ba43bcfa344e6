#pragma once
// The model and the data of a script, as the core asks for them. Filled by Python before a run begins; immutable then.

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/batch_plan.h"
#include "bindings.h"
#include "ps/spec.h"
#include "runtime/model_provider.h"

namespace motley::python {

struct Script {
  Layout layout;
  bool acts_on_groups = false;
  bool draws = false;                           // random numbers
  std::vector<SharedBytes> weights{};           // by chunk; empty where the script is a worker
  std::map<std::string, SharedBytes> frozen{};  // likewise
  ps::OptimizerSpec optimizer{};                // likewise
  ps::ScheduleSpec schedule{};
  std::map<std::string, std::vector<SharedBytes>> optimizer_state{};  // InitialState::optimizer_state
  std::shared_ptr<const data::Dataset> train{}, test{};
  std::vector<std::string> scores{};  // names
  std::string code{};                 // ModelInputs::script
  std::vector<std::string> arguments{};
  std::uint64_t run = 1;  // which of the script's
  SharedBytes files{};    // InitialState::script_files
  std::vector<ps::FollowedRates> followed{};
  std::optional<SharedBytes> state{};  // what the loss gets at first
  std::vector<BatchChange> batches{};  // InitialState::batches
  std::shared_ptr<Kept> follower{};    // (run's directory, step, loss, scores) -> learning rates by group; may be null
  std::vector<runtime::Device> devices{};
  std::shared_ptr<Kept> make{};  // (device, threads) -> the object of python_model.h
  // Of workers in rounds: () -> (kind, groups, schedule or None), and () -> the object of python_optimizer.h
  std::shared_ptr<Kept> own_optimizer{}, own_outside{};
};

/// The weights of each chunk. Raises where there are more or fewer.
std::vector<SharedBytes> chunks_of(const Layout& layout, std::span<const float> flat);

/// (step, samples of it and of those behind it). Raises where these are no changes in order, from `first` on.
std::vector<BatchChange> batch_changes(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& changes,
                                       std::uint64_t first);

/// Raises where it is too long.
SharedBytes loss_state(const nb::bytes& state);

class ScriptModels final : public runtime::ModelProvider {
 public:
  explicit ScriptModels(std::shared_ptr<const Script> script) : script_(std::move(script)) {}
  [[nodiscard]] std::vector<runtime::Device> devices() const override { return script_->devices; }
  Result<runtime::ModelInputs> load(const config::RunConfig& config) override;
  Result<runtime::InitialState> initial_state(const runtime::ModelInputs& inputs) override;
  Result<std::unique_ptr<DeviceModel>> make(const runtime::ModelInputs& inputs, const std::string& device,
                                            unsigned threads) override;
  Result<runtime::LocalOptimizer> local_optimizer(const runtime::ModelInputs& inputs) override;

  /// Of the script: which the head was last seen at. Any thread.
  [[nodiscard]] std::uint64_t run_of_head() const { return run_of_head_; }

 private:
  std::shared_ptr<const Script> script_;
  std::atomic<std::uint64_t> run_of_head_{script_->run};
};

}  // namespace motley::python
