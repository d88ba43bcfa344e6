#pragma once
// Weights and optimizer state in the memory of the device that computes, for steps of which nothing crosses the bus.
// Who computes there brings one along (DeviceModel::device_optimizer); when a step is made is for others to say.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley {

enum class OptimizerKind : std::uint8_t { sgd, adam, adamw, outside };

/// All state at one version. Handles only: taking one costs no copy.
struct Snapshot {
  std::uint64_t version = 0;
  std::vector<SharedBytes> weights;                           // by chunk, fp32
  std::map<std::string, std::vector<SharedBytes>> optimizer;  // "momentum_buffer" | "exp_avg", "exp_avg_sq": by chunk
  std::optional<double> norm_before{};  // of the gradient of the step before, where that clips the next
};

/// A group's numbers at one step, as torch hands them to its kernels: computed in double, then rounded once.
struct StepScalars {
  float lr = 0;            // sgd: -lr; adam: -lr / bias_correction1
  float weight_decay = 0;  // L2; zero for adamw
  float keep = 1;          // adamw: 1 - lr * weight_decay
  float momentum = 0;
  float fresh = 1;  // sgd: 1 - dampening, or 1 at the first step; adam: 1 - beta1
  float beta2 = 0;
  float fresh2 = 0;      // 1 - beta2
  float correction = 1;  // sqrt(1 - beta2^step)
  float eps = 0;
  bool nesterov = false;
};

/// What a device makes of a gradient.
struct StepNumbers {
  double loss_sum = 0;  // of the newest task
  double norm = 0;  // over all trained elements, before clipping; not finite where one of them or a statistic is not
};

/// Methods are called by the thread that computes, but for download(true). After an error it is of no use until the
/// next settle().
class DeviceOptimizer {
 public:
  virtual ~DeviceOptimizer() = default;
  /// Takes over weights and state of an optimizer of this kind. Errors: memory.
  virtual Status settle(const Snapshot& state, OptimizerKind kind) = 0;
  /// Divides the gradient sums that the newest task left by `weight`, statistics by `samples`. Of a step, this alone
  /// waits for the device.
  virtual Result<StepNumbers> reduce(double weight, std::uint64_t samples) = 0;
  /// Multiplies the gradient with `factor`, unless that is 1, and runs the optimizer with it. `groups`: by parameter
  /// group.
  virtual Status update(std::span<const StepScalars> groups, float factor) = 0;
  /// Copies weights and state to another place on the device. False: it has no room for that, or no such way.
  virtual bool put_aside() { return false; }
  /// Copies of weights and state; `version` and `norm_before` are left to the caller. `aside`: of what was put aside
  /// last, on any thread, while steps go on.
  virtual Result<Snapshot> download(bool aside) = 0;
  /// Gives the memory of the state back.
  virtual void leave() = 0;
};

}  // namespace motley
