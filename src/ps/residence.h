#pragma once
// Weights and optimizer state in the memory of the device that computes, for steps of which nothing crosses the bus.
// Who computes there brings one along (Computation::residence); ps::Server says what a step does.

#include <cstdint>
#include <span>

#include "motley/result.h"
#include "ps/kernels.h"
#include "ps/server.h"

namespace motley::ps {

/// Methods are called by the thread that computes. After an error it is of no use until the next settle().
class Residence {
 public:
  virtual ~Residence() = default;
  /// Takes over weights and state of an optimizer of this kind. Errors: memory.
  virtual Status settle(const Snapshot& state, OptimizerKind kind) = 0;
  /// Divides the gradient sums that the newest run() left by `weight`, statistics by `samples`. The norm over all
  /// trained elements; not finite where one of them is not.
  virtual Result<double> reduce(double weight, std::uint64_t samples) = 0;
  /// Multiplies the gradient with `factor`, unless that is 1, and runs the optimizer with it. `groups`: by parameter
  /// group.
  virtual Status update(std::span<const StepScalars> groups, float factor) = 0;
  /// Copies of weights and state; `version` and `norm_before` are left to the caller.
  virtual Result<Snapshot> bring() = 0;
  /// Gives the memory of the state back.
  virtual void leave() = 0;
};

}  // namespace motley::ps
