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
#include "motley/computation.h"
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

  /// Where a task was abandoned before its weights were there.
  struct Abandoned {};
  /// Takes what is there of the weights, or waits for the first of them; forward() takes the rest when it comes to it.
  /// `weights` live until the last forward() at this version. Throws Abandoned.
  void load(std::uint64_t version, Weights& weights);
  void load_all();          // throws Abandoned
  void start_training();    // training mode, gradients zero
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
  // For a TorchResidence. What lies on the device:
  [[nodiscard]] const at::Tensor& weights() const noexcept { return weights_; }
  [[nodiscard]] const at::Tensor& gradients() const noexcept { return gradients_; }
  [[nodiscard]] const std::vector<Statistic>& statistics() const noexcept { return statistics_; }
  /// The part of such a vector that is placement i.
  [[nodiscard]] at::Tensor piece(const at::Tensor& flat, std::size_t placement) const;
  /// To and from the device, as put_chunks() and copy_chunks() do.
  void send(std::span<const SharedBytes> chunks, const at::Tensor& flat);
  [[nodiscard]] std::vector<SharedBytes> fetch(const at::Tensor& flat, bool statistics);
  /// These are the weights until forget(), without load().
  void settle(std::span<const SharedBytes> weights);
  /// The next load() takes everything.
  void forget();

 private:
  // std::shared_ptr or c10::intrusive_ptr, as the version of torch has it.
  using Node = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));
  void bind();
  void watch(std::size_t placement, const at::Tensor& parameter);
  [[nodiscard]] bool holds(std::uint64_t version, Weights& weights) const;
  [[nodiscard]] ChunkId chunk_of(std::uint64_t element) const;
  void take(ChunkId first, ChunkId last);
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
  std::uint64_t version_ = 0;
  Weights* arriving_ = nullptr;        // where the chunks that are missing come from
  std::vector<bool> loaded_;           // by chunk
  std::size_t missing_;                // of them
  std::vector<std::uint32_t> probes_;  // a few words of each chunk
};

}  // namespace motley::torch_adapter
