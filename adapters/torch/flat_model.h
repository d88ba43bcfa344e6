#pragma once
// A model whose parameters and gradients are views into two flat vectors in the order of its layout, on its device.
// One thread at a time; on_final callbacks come from inside backward().

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "motley/bytes.h"
#include "motley/device_model.h"
#include "torch/inspect.h"

namespace motley::torch_adapter {

class FlatModel {
 public:
  /// `staged`: the host sees weights and gradients through copies; always so on devices other than the CPU.
  FlatModel(InspectedModel inspected, const at::Device& device, bool staged = false);
  FlatModel(const FlatModel&) = delete;
  FlatModel& operator=(const FlatModel&) = delete;
  ~FlatModel() = default;

  [[nodiscard]] const Layout& layout() const noexcept { return inspected_.layout; }
  [[nodiscard]] const at::Device& device() const noexcept { return device_; }
  [[nodiscard]] bool on_cpu() const { return device_.is_cpu(); }
  [[nodiscard]] bool staged() const noexcept { return staged_; }
  [[nodiscard]] bool acts_on_groups() const noexcept { return inspected_.acts_on_groups; }
  [[nodiscard]] bool draws_random_numbers() const noexcept { return inspected_.draws_random_numbers; }

  /// Where weights did not come that forward() needs.
  struct Abandoned {};
  /// The chunks from `first` on.
  void load(ChunkId first, std::span<const std::span<const float>> chunks);
  /// Whether the weights are still those that load() brought: no device optimizer has moved them since.
  [[nodiscard]] bool keeps_weights() const noexcept { return !moved_; }
  /// From now on forward() asks it for what it comes to, until it is told of another one; nullptr: all weights are
  /// here.
  void await(Arriving* weights) noexcept { arriving_ = weights; }
  /// Training mode, gradients zero. `still`: dropout is off, unless layers need that mode for their statistics.
  void start_training(bool still);
  void start_evaluation();  // evaluation mode, running statistics of the loaded version
  /// In training, also adds the batch statistics of `x` to the gradients' statistics region. Throws Abandoned.
  at::Tensor forward(const at::Tensor& x);

  /// During the next backward passes: called when the gradient of placement i is final. Not when staged: there the
  /// gradients cannot be read yet. Empty to stop.
  void on_final(std::function<void(std::size_t placement)> callback) { on_final_ = std::move(callback); }
  /// Brings the gradients to the host; gradient() sees them after that. Nothing to do unless staged.
  void fetch_gradients();
  [[nodiscard]] std::span<const float> gradient(ChunkId chunk) const;

  struct Statistic {               // a running_mean / running_var pair
    at::Tensor mean, var;          // the module's buffers
    at::Tensor mean_sum, var_sum;  // in the gradients
    at::Tensor mean_now, var_now;  // in the weights
    double momentum = 0;
  };
  // For a TorchDeviceOptimizer. What lies on the device:
  [[nodiscard]] const at::Tensor& weights() const noexcept { return weights_; }
  [[nodiscard]] const at::Tensor& gradients() const noexcept { return gradients_; }
  [[nodiscard]] const std::vector<Statistic>& statistics() const noexcept { return statistics_; }
  /// The part of such a vector that is placement i.
  [[nodiscard]] at::Tensor piece(const at::Tensor& flat, std::size_t placement) const;
  /// To and from the device, as put_chunks() and copy_chunks() do.
  void send(std::span<const SharedBytes> chunks, const at::Tensor& flat);
  [[nodiscard]] std::vector<SharedBytes> fetch(const at::Tensor& flat, bool statistics);
  /// These are the weights until the next load(), which brings all of them.
  void settle(std::span<const SharedBytes> weights);

 private:
  // std::shared_ptr or c10::intrusive_ptr, as the version of torch has it.
  using Node = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));
  void bind();
  void watch(std::size_t placement, const at::Tensor& parameter);
  at::Tensor run(const at::Tensor& x);

  InspectedModel inspected_;
  at::Device device_;
  bool staged_;
  at::Tensor weights_, gradients_;            // on the device
  at::Tensor host_weights_, host_gradients_;  // the same tensors unless staged; pinned for CUDA
  std::vector<Statistic> statistics_;
  bool training_ = false;
  std::vector<Node> accumulators_;  // kept alive: parameters refer to them weakly
  std::function<void(std::size_t)> on_final_;
  Arriving* arriving_ = nullptr;
  bool moved_ = false;
};

}  // namespace motley::torch_adapter
