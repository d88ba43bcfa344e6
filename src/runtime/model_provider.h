#pragma once
// Where models come from: of a script, or softmax regression. The core only sees layouts and device models.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/batch_plan.h"
#include "config/config.h"
#include "data/dataset.h"
#include "motley/bytes.h"
#include "motley/device_model.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "ps/spec.h"

namespace motley::runtime {

struct Device {
  std::string name;  // "cpu", "cuda:0", "mps"
  std::string description;
  std::uint64_t memory_bytes = 0;
  unsigned threads = 0;  // of a CPU
};

/// What a run is about. `test` may be null.
struct ModelInputs {
  const config::RunConfig* config = nullptr;
  std::shared_ptr<const data::Dataset> train{}, test{};
  std::string script{};  // what runs of a script (wire/script.h); empty: there is none
};

struct InitialState {
  Layout layout;
  std::vector<SharedBytes> weights{};           // by chunk, fp32
  std::map<std::string, SharedBytes> frozen{};  // by entry name
  bool acts_on_groups = false;                  // BatchNorm, dropout: the grain must be the micro-batch
  bool draws = false;                           // random numbers, which differ between kinds of devices
  ps::OptimizerSpec optimizer{};
  ps::ScheduleSpec schedule{};
  std::map<std::string, std::vector<SharedBytes>> optimizer_state{};  // by name and chunk: it goes on; else zero
  std::vector<std::string> scores{};                                  // names of Outcome::scores
  SharedBytes script_files{};                                         // for who joins with --fetch
  bool rates_follow_evaluations = false;                              // TrainOptions::rates_after
  std::vector<ps::FollowedRates> followed{};  // of a run that is resumed: what it gave so far, by step
  std::optional<SharedBytes> state{};         // what the loss gets at first
  std::vector<BatchChange> batches{};         // where the model's side cuts the steps: as far as it has, in order
};

/// What workers make the steps of rounds with.
struct LocalOptimizer {
  ps::OptimizerSpec optimizer{};
  std::function<Result<std::shared_ptr<ps::OutsideOptimizer>>()> outside{};  // of that kind: one more
  ps::ScheduleSpec schedule{};
};

class ModelProvider {
 public:
  virtual ~ModelProvider() = default;
  /// Accelerators first.
  [[nodiscard]] virtual std::vector<Device> devices() const = 0;
  /// Its models read no files: a process that joins a run for them may be confined.
  [[nodiscard]] virtual bool is_confined() const { return false; }
  /// The training and (when asked for) the test set of `config`, which must outlive what is returned.
  virtual Result<ModelInputs> load(const config::RunConfig& config) = 0;
  virtual Result<InitialState> initial_state(const ModelInputs& inputs) = 0;
  virtual Result<std::unique_ptr<DeviceModel>> make(const ModelInputs& inputs, const std::string& device,
                                                    unsigned threads) = 0;
  /// Of a run in rounds.
  virtual Result<LocalOptimizer> local_optimizer(const ModelInputs& inputs) = 0;
};

}  // namespace motley::runtime
