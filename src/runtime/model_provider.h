#pragma once
// Where models come from. The program hands one in that knows torch; the core only sees layouts and device models.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/batch_plan.h"
#include "config/config.h"
#include "data/dataset.h"
#include "data/files.h"
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

/// What a model needs besides the configuration. `test` may be null.
struct ModelInputs {
  const config::RunConfig* config = nullptr;
  SharedBytes file;  // TorchScript; else empty
  std::shared_ptr<const data::Dataset> train, test;
  std::string train_uri{}, test_uri{};  // as this machine opened them: without addresses
  std::string script{};                 // what runs of a script (wire/script.h); empty: there is none
};

using DownloadReport = std::function<void(const std::string& file, std::uint64_t done, std::uint64_t total)>;

struct InitialState {
  Layout layout;
  std::vector<SharedBytes> weights;              // by chunk, fp32
  std::map<std::string, SharedBytes> frozen;     // by entry name
  bool acts_on_groups = false;                   // BatchNorm, dropout: the grain must be the micro-batch
  bool draws = false;                            // random numbers, which differ between kinds of devices
  std::optional<ps::OptimizerSpec> optimizer{};  // where the model comes with its own; else the configuration's
  std::optional<ps::ScheduleSpec> schedule{};    // likewise
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
  /// A process that joins a run may work for the run alone, and then be confined: beside what the user named, its
  /// models read files below these directories at most. Nothing: it is the user's own, and is not confined.
  [[nodiscard]] virtual std::optional<std::vector<std::filesystem::path>> confined_to() const { return {}; }
  /// What downloads data sets that are known by name; empty where nothing does.
  [[nodiscard]] virtual data::Retrieve retrieve() const { return {}; }
  /// What brings data that lie at an address; empty: http:// and https:// come by retrieve(), and nothing else does.
  [[nodiscard]] virtual data::Bring bring() const { return {}; }
  /// The training and (when asked for) the test set of `config`, which must outlive what is returned.
  virtual Result<ModelInputs> load(const config::RunConfig& config, const DownloadReport& report);
  virtual Result<InitialState> initial_state(const ModelInputs& inputs) = 0;
  virtual Result<std::unique_ptr<DeviceModel>> make(const ModelInputs& inputs, const std::string& device,
                                                    unsigned threads) = 0;
  /// Of a run in rounds, of so many steps of its workers: as the configuration says, where the model does not come with
  /// its own.
  virtual Result<LocalOptimizer> local_optimizer(const ModelInputs& inputs, std::uint64_t steps);
};

}  // namespace motley::runtime
