#include "torch/torch_device_optimizer.h"

#include "base/assert.h"
#include "torch/guard.h"

namespace motley::torch_adapter {

TorchDeviceOptimizer::TorchDeviceOptimizer(FlatModel& model) : model_(model) {
  const std::span<const Placement> placements = model.layout().placements();
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const LayoutEntry& entry = model.layout().entries()[placements[i].entry];
    if (entry.kind != TensorKind::trained) continue;
    if (groups_.size() <= entry.group) groups_.resize(entry.group + 1);
    Group& group = groups_[entry.group];
    group.placements.push_back(i);
    group.weights.push_back(model.piece(model.weights(), i));
    group.gradients.push_back(model.piece(model.gradients(), i));
    trained_.push_back(group.gradients.back());
  }
  for (const FlatModel::Statistic& statistic : model.statistics())
    statistics_.insert(statistics_.end(), {statistic.mean_sum, statistic.var_sum});
}

/// What goes wrong may have gone wrong half way.
template <class Action>
auto TorchDeviceOptimizer::on_device(const char* what, Action&& action) -> decltype(action()) {
  MOTLEY_ASSERT(settled_);
  const c10::OptionalDeviceGuard here = guard_of(model_.device());
  const at::NoGradGuard no_grad;
  auto done = guarded(what, std::forward<Action>(action));
  if (!done) settled_ = false;
  return done;
}

Status TorchDeviceOptimizer::settle(const Snapshot& state, OptimizerKind kind) {
  kind_ = kind;
  settled_ = true;
  Status done = on_device("moving the optimizer's state to the device", [&]() -> Status {
    states_.clear();
    for (const auto& [name, chunks] : state.optimizer) {
      states_.emplace_back(name, at::zeros_like(model_.weights()));
      model_.send(chunks, states_.back().second);
    }
    for (Group& group : groups_) {
      group.states.clear();
      for (const auto& [name, flat] : states_) {
        std::vector<at::Tensor>& pieces = group.states.emplace_back();
        for (const std::size_t placement : group.placements) pieces.push_back(model_.piece(flat, placement));
      }
    }
    model_.settle(state.weights);
    return {};
  });
  if (!done) leave();
  return done;
}

Result<StepNumbers> TorchDeviceOptimizer::reduce(double weight, std::uint64_t samples) {
  return on_device("adding up the gradient", [&]() -> Result<StepNumbers> {
    at::_foreach_div_(trained_, static_cast<float>(weight));
    const auto norm_of = [](const std::vector<at::Tensor>& tensors) {
      return at::stack(at::_foreach_norm(tensors, 2)).norm();
    };
    at::Tensor norm = norm_of(trained_);
    if (!statistics_.empty()) {
      at::_foreach_div_(statistics_, static_cast<float>(samples));
      norm = norm + 0 * norm_of(statistics_);  // not finite where they are not
    }
    return StepNumbers{loss_sum_, norm.item<double>()};
  });
}

Status TorchDeviceOptimizer::update(std::span<const StepScalars> groups, float factor) {
  return on_device("running the optimizer", [&]() -> Status {
    if (factor != 1) at::_foreach_mul_(trained_, factor);
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].weights.empty()) continue;
      kind_ == OptimizerKind::sgd ? sgd(groups_[i], groups[i]) : adam(groups_[i], groups[i]);
    }
    move_statistics();
    return {};
  });
}

// torch.optim.SGD. The buffer starts from zero, where torch starts from the first gradient: `fresh` is 1 then.
void TorchDeviceOptimizer::sgd(Group& group, const StepScalars& numbers) const {
  std::vector<at::Tensor>& gradients = group.gradients;
  if (numbers.weight_decay != 0) at::_foreach_add_(gradients, group.weights, numbers.weight_decay);
  if (numbers.momentum == 0 || group.states.empty()) {
    at::_foreach_add_(group.weights, gradients, numbers.lr);
    return;
  }
  std::vector<at::Tensor>& momentum = group.states[0];
  at::_foreach_mul_(momentum, numbers.momentum);
  at::_foreach_add_(momentum, gradients, numbers.fresh);
  if (!numbers.nesterov) {
    at::_foreach_add_(group.weights, momentum, numbers.lr);
    return;
  }
  at::_foreach_add_(gradients, momentum, numbers.momentum);
  at::_foreach_add_(group.weights, gradients, numbers.lr);
}

// torch.optim.Adam and AdamW.
void TorchDeviceOptimizer::adam(Group& group, const StepScalars& numbers) const {
  std::vector<at::Tensor>& gradients = group.gradients;
  std::vector<at::Tensor>&mean = group.states[0], &square = group.states[1];
  if (numbers.weight_decay != 0) at::_foreach_add_(gradients, group.weights, numbers.weight_decay);
  if (numbers.keep != 1) at::_foreach_mul_(group.weights, numbers.keep);
  at::_foreach_lerp_(mean, gradients, numbers.fresh);
  at::_foreach_mul_(square, numbers.beta2);
  at::_foreach_addcmul_(square, gradients, gradients, numbers.fresh2);
  std::vector<at::Tensor> denominator = at::_foreach_sqrt(square);
  at::_foreach_div_(denominator, numbers.correction);
  at::_foreach_add_(denominator, numbers.eps);
  at::_foreach_addcdiv_(group.weights, mean, denominator, numbers.lr);
}

// As ps::move_statistics; MPS has no float64.
void TorchDeviceOptimizer::move_statistics() const {
  const at::ScalarType exact = model_.device().is_mps() ? at::kFloat : at::kDouble;
  for (const FlatModel::Statistic& statistic : model_.statistics()) {
    const at::Tensor mean = statistic.mean_sum.to(exact);
    const at::Tensor var = (statistic.var_sum.to(exact) - mean * mean).clamp_min(0);
    const double fresh = statistic.momentum;
    statistic.mean_now.copy_((1 - fresh) * statistic.mean_now.to(exact) + fresh * mean);
    statistic.var_now.copy_((1 - fresh) * statistic.var_now.to(exact) + fresh * var);
  }
}

Result<Snapshot> TorchDeviceOptimizer::download(bool aside) {
  MOTLEY_ASSERT(!aside);
  if (!settled_) return Error{ErrorCode::internal, "weights and state on the device are of no use", ""};
  return on_device("bringing weights and state from the device", [&]() -> Result<Snapshot> {
    Snapshot found;
    found.weights = model_.fetch(model_.weights(), true);
    for (const auto& [name, flat] : states_) found.optimizer[name] = model_.fetch(flat, false);
    return found;
  });
}

void TorchDeviceOptimizer::leave() {
  settled_ = false;
  for (Group& group : groups_) group.states.clear();
  states_.clear();
}

}  // namespace motley::torch_adapter
