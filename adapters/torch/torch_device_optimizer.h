#pragma once
// Weights, gradient and optimizer state in a device's memory. Formulas are torch.optim's, by the kernels that its
// foreach implementations use.

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "motley/device_optimizer.h"
#include "torch/flat_model.h"

namespace motley::torch_adapter {

class TorchDeviceOptimizer final : public DeviceOptimizer {
 public:
  /// Weights and gradient are those of `model`, which outlives this.
  explicit TorchDeviceOptimizer(FlatModel& model);

  Status settle(const Snapshot& state, OptimizerKind kind) override;
  Result<StepNumbers> reduce(double weight, std::uint64_t samples) override;
  Status update(std::span<const StepScalars> groups, float factor) override;
  Result<Snapshot> download(bool aside) override;
  void leave() override;
  /// Of the newest task.
  void set_loss_sum(double loss_sum) { loss_sum_ = loss_sum; }

 private:
  /// The same pieces of every vector.
  struct Group {
    std::vector<std::size_t> placements;
    std::vector<at::Tensor> weights, gradients;
    std::vector<std::vector<at::Tensor>> states;  // as states_
  };
  template <class Action>
  auto on_device(const char* what, Action&& action) -> decltype(action());
  void sgd(Group& group, const StepScalars& numbers) const;
  void adam(Group& group, const StepScalars& numbers) const;
  void move_statistics() const;

  FlatModel& model_;
  std::vector<Group> groups_;
  std::vector<at::Tensor> trained_, statistics_;  // gradients of all groups, and sums of statistics
  OptimizerKind kind_{};
  std::vector<std::pair<std::string, at::Tensor>> states_;
  double loss_sum_ = 0;
  bool settled_ = false;
};

}  // namespace motley::torch_adapter
