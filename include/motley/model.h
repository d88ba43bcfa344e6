#pragma once
// A model as a program brings it to a run: its tensors, its optimizer, what its data sets have, and who computes on a
// device. Every machine of a run makes the same Model; what the head compares of them is said beside each method.
// Motley calls one method at a time, from threads of its own as well, until train() or join() returns. No method
// throws. What device() gave lives on a thread of its own meanwhile.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "motley/device_model.h"
#include "motley/device_optimizer.h"
#include "motley/layout.h"
#include "motley/result.h"

namespace motley {

/// What an optimizer does with the tensors of one group. Names, formulas and defaults are those of torch.optim.
struct OptimizerGroup {
  double lr = 1e-3;  // at first: see Optimizer::factors
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

/// The head runs it. Other machines need it only where a run makes rounds of local steps.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::sgd;                              // any but OptimizerKind::outside
  std::vector<OptimizerGroup> groups = std::vector<OptimizerGroup>(1);  // indexed by LayoutEntry::group
  /// By what the rates are multiplied in each step; the last one holds for all that follow. Empty: by 1.
  std::vector<double> factors{};
};

/// Of a data set, whose samples have the numbers 0 to size - 1. Every machine has the same ones.
struct Samples {
  std::uint64_t size = 0;
  std::string sample{};    // type and shape of one: "(float32 [1, 28, 28], int64 [])"; compared
  std::uint64_t hash = 0;  // of the contents; compared where both machines have one. 0: there is none
};

/// Where a model can compute.
struct Device {
  std::string name;                // "cpu", "cuda:0"
  std::string description{};       // for people
  std::uint64_t memory_bytes = 0;  // 0: not known
  unsigned threads = 0;            // of a processor
};

class Model {
 public:
  virtual ~Model() = default;
  /// Compared, tensor by tensor. Entries of TensorKind::frozen are not supported.
  [[nodiscard]] virtual const Layout& layout() const = 0;
  /// layout().flat_elements() numbers: what a new run begins with. Asked for on the head alone.
  virtual Result<std::vector<float>> initial_weights() = 0;
  [[nodiscard]] virtual Optimizer optimizer() const = 0;

  [[nodiscard]] virtual Samples train_samples() const = 0;
  /// Size 0: the run is not evaluated.
  [[nodiscard]] virtual Samples test_samples() const { return {}; }
  /// Names of Sums::scores, which evaluations sum over the test samples; people see their means. "accuracy" is shown as
  /// a part of 1.
  [[nodiscard]] virtual std::vector<std::string> scores() const { return {}; }
  /// Words that decide what is trained, as a script's arguments do. Compared, but for paths of files that exist here: a
  /// machine with others is told which ones the head has.
  [[nodiscard]] virtual std::vector<std::string> arguments() const { return {}; }
  /// Layers act on samples together (BatchNorm): ranges are cut at multiples of train.grain, and DeviceModel::group()
  /// says the same number.
  [[nodiscard]] virtual bool acts_on_groups() const { return false; }
  /// Its passes draw random numbers (dropout), which differ between kinds of devices.
  [[nodiscard]] virtual bool draws() const { return false; }

  /// Accelerators first; those are used, and the processor where there are none. By default the processor alone.
  [[nodiscard]] virtual std::vector<Device> devices() const;
  /// Who computes on a device of devices(). `threads`: of a processor; 0: all. Errors are told to the head, whose run
  /// goes on without this device.
  virtual Result<std::unique_ptr<DeviceModel>> device(const std::string& name, unsigned threads) = 0;
};

}  // namespace motley
