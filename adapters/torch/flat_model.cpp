#include "torch/flat_model.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/assert.h"
#include "tensor/flat_chunks.h"
#include "torch/read_watch.h"

namespace motley::torch_adapter {
namespace {

class FinalHook : public torch::autograd::FunctionPostHook {
 public:
  explicit FinalHook(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

FlatModel::FlatModel(InspectedModel inspected, const at::Device& device, bool staged)
    : inspected_(std::move(inspected)), device_(device), staged_(staged || !device.is_cpu()) {
  const at::NoGradGuard no_grad;
  inspected_.model->to(device_);
  const auto elements = static_cast<std::int64_t>(layout().flat_elements());
  weights_ = at::zeros({elements}, at::TensorOptions(at::kFloat).device(device_));
  gradients_ = at::zeros_like(weights_);
  if (!staged_) {
    host_weights_ = weights_;
    host_gradients_ = gradients_;
  } else {
    const auto host = at::TensorOptions(at::kFloat).pinned_memory(device_.is_cuda());
    host_weights_ = at::zeros({elements}, host);
    host_gradients_ = at::zeros({elements}, host);
  }
  bind();
}

void FlatModel::bind() {
  const std::vector<NamedTensor>& tensors = inspected_.model->tensors();
  const std::span<const Placement> placements = layout().placements();
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const Placement& place = placements[i];
    const LayoutEntry& entry = layout().entries()[place.entry];
    at::Tensor tensor = tensors[place.entry].tensor;
    if (entry.kind == TensorKind::trained) {
      tensor.set_data(piece(weights_, i).view(tensor.sizes()));
      tensor.mutable_grad() = piece(gradients_, i).view(tensor.sizes());
      if (!staged_) watch(i, tensor);
    } else if (entry.kind == TensorKind::running_mean) {
      MOTLEY_ASSERT(i + 1 < placements.size());
      const Placement& var = placements[i + 1];
      MOTLEY_ASSERT(layout().entries()[var.entry].kind == TensorKind::running_var);
      statistics_.push_back({tensor, tensors[var.entry].tensor, piece(gradients_, i), piece(gradients_, i + 1),
                             piece(weights_, i), piece(weights_, i + 1), entry.momentum});
    }
  }
}

void FlatModel::watch(std::size_t placement, const at::Tensor& parameter) {
  const at::AutoGradMode grad(true);
  Node node = torch::autograd::impl::grad_accumulator(parameter);
  node->add_post_hook(std::make_unique<FinalHook>([this, placement] {
    if (on_final_) on_final_(placement);
  }));
  accumulators_.push_back(std::move(node));
}

void FlatModel::load(ChunkId first, std::span<const std::span<const float>> chunks) {
  moved_ = false;
  auto* host = host_weights_.data_ptr<float>();
  const std::uint64_t begin = layout().chunks()[first].offset;
  std::uint64_t end = begin;
  for (const std::span<const float> values : chunks) {
    std::memcpy(host + end, values.data(), values.size_bytes());
    end += values.size();
  }
  if (!staged_) return;
  const at::NoGradGuard no_grad;
  const auto from = static_cast<std::int64_t>(begin), count = static_cast<std::int64_t>(end - begin);
  weights_.narrow(0, from, count).copy_(host_weights_.narrow(0, from, count));
}

void FlatModel::start_training(bool still) {
  const at::NoGradGuard no_grad;
  gradients_.zero_();
  inspected_.model->train(!still || acts_on_groups() || !draws_random_numbers());
  training_ = true;
}

void FlatModel::start_evaluation() {
  const at::NoGradGuard no_grad;
  for (Statistic& statistic : statistics_) {
    statistic.mean.copy_(statistic.mean_now.view(statistic.mean.sizes()));
    statistic.var.copy_(statistic.var_now.view(statistic.var.sizes()));
  }
  inspected_.model->train(false);
  training_ = false;
}

at::Tensor FlatModel::run(const at::Tensor& x) {
  if (arriving_ == nullptr || arriving_->complete()) return inspected_.model->forward(x);
  const ReadWatch watch(weights_, [this](std::int64_t first, std::int64_t last) {
    if (!arriving_->bring(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(last) + 1)) throw Abandoned{};
  });
  at::Tensor output = inspected_.model->forward(x);
  watch.check();
  return output;
}

at::Tensor FlatModel::forward(const at::Tensor& x) {
  if (!training_ || statistics_.empty()) return run(x);
  {
    const at::NoGradGuard no_grad;
    for (Statistic& statistic : statistics_) {
      statistic.mean.zero_();
      statistic.var.zero_();
    }
  }
  at::Tensor output = run(x);
  const at::NoGradGuard no_grad;
  const auto samples = static_cast<double>(x.size(0));
  for (Statistic& statistic : statistics_) {
    // From zero, one moving-average step leaves momentum times the batch's own statistic.
    const at::Tensor mean = statistic.mean.flatten().to(at::kFloat) / statistic.momentum;
    const at::Tensor var = statistic.var.flatten().to(at::kFloat) / statistic.momentum;
    statistic.mean_sum.add_(mean, samples);
    statistic.var_sum.add_(var + mean * mean, samples);
  }
  return output;
}

void FlatModel::fetch_gradients() {
  if (!staged_) return;
  const at::NoGradGuard no_grad;
  host_gradients_.copy_(gradients_);  // blocking: MPS gives garbage otherwise
}

at::Tensor FlatModel::piece(const at::Tensor& flat, std::size_t placement) const {
  const Placement& place = layout().placements()[placement];
  return flat.narrow(0, static_cast<std::int64_t>(place.offset), static_cast<std::int64_t>(place.elements));
}

// Through the gradients' place on the host, which nobody reads meanwhile.
void FlatModel::send(std::span<const SharedBytes> chunks, const at::Tensor& flat) {
  const at::NoGradGuard no_grad;
  put_chunks(layout(), chunks, {host_gradients_.data_ptr<float>(), layout().flat_elements()});
  flat.copy_(host_gradients_);
}

std::vector<SharedBytes> FlatModel::fetch(const at::Tensor& flat, bool statistics) {
  const at::NoGradGuard no_grad;
  host_gradients_.copy_(flat);
  return copy_chunks(layout(), {host_gradients_.const_data_ptr<float>(), layout().flat_elements()}, statistics);
}

void FlatModel::settle(std::span<const SharedBytes> weights) {
  MOTLEY_ASSERT(staged_);
  moved_ = true;
  send(weights, weights_);
}

std::span<const float> FlatModel::gradient(ChunkId chunk) const {
  const Chunk& place = layout().chunks()[chunk];
  return {host_gradients_.const_data_ptr<float>() + place.offset, place.elements};
}

}  // namespace motley::torch_adapter
