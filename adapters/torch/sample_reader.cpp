#include "torch/sample_reader.h"

#include <algorithm>
#include <thread>

#include "machine/processor.h"

namespace motley::torch_adapter {
namespace {

constexpr std::uint64_t kElementsOfOneThread = 1 << 17;  // takes several times as long as starting a thread
constexpr std::uint64_t kThreadsMax = 8;

}  // namespace

SampleReader::SampleReader(std::shared_ptr<const data::Dataset> dataset, const at::Device& device, bool staged)
    : dataset_(std::move(dataset)), device_(device), staged_(staged) {}

void SampleReader::grow(std::int64_t samples) {
  if (samples <= capacity_) return;
  const bool classes = dataset_->target_kind() == data::TargetKind::classes;
  std::vector<std::int64_t> shape = {samples};
  std::vector<std::int64_t> target_shape = {samples};
  shape.insert(shape.end(), dataset_->sample_shape().begin(), dataset_->sample_shape().end());
  if (!classes || dataset_->target_elements() > 1) {
    target_shape.push_back(static_cast<std::int64_t>(dataset_->target_elements()));
  }
  const auto pinned = at::TensorOptions().pinned_memory(device_.is_cuda());
  x_ = at::empty(shape, pinned.dtype(at::kFloat));
  target_ = at::empty(target_shape, pinned.dtype(classes ? at::kLong : at::kFloat));
  if (staged_) {
    device_x_ = at::empty(shape, at::TensorOptions(device_).dtype(at::kFloat));
    device_target_ = at::empty(target_shape, at::TensorOptions(device_).dtype(target_.scalar_type()));
  }
  capacity_ = samples;
}

at::Tensor SampleReader::on_device(const at::Tensor& host, at::Tensor& device_buffer, std::int64_t samples) {
  const at::Tensor filled = host.narrow(0, 0, samples);
  if (!staged_) return filled;
  at::Tensor copy = device_buffer.narrow(0, 0, samples);
  copy.copy_(filled);
  return copy;
}

// An accelerator takes a batch in about the time that one thread needs to gather it, and waits for it; so several do.
void SampleReader::gather(std::span<const std::uint64_t> indices, std::span<float> x) const {
  const std::uint64_t most = std::min<std::uint64_t>(kThreadsMax, machine::allowed_processors());
  const std::uint64_t parts = staged_ ? std::clamp<std::uint64_t>(x.size() / kElementsOfOneThread, 1, most) : 1;
  const std::size_t width = indices.empty() ? 0 : x.size() / indices.size();
  const auto part = [&](std::uint64_t i) {
    const std::size_t first = indices.size() * i / parts, last = indices.size() * (i + 1) / parts;
    dataset_->gather(indices.subspan(first, last - first), x.subspan(first * width, (last - first) * width));
  };
  std::vector<std::jthread> others;
  for (std::uint64_t i = 1; i < parts; ++i) others.emplace_back(part, i);
  part(0);
}

SampleReader::Batch SampleReader::read(std::span<const std::uint64_t> indices) {
  const auto samples = static_cast<std::int64_t>(indices.size());
  grow(samples);
  const at::NoGradGuard no_grad;
  const auto floats = [](const at::Tensor& tensor, std::int64_t rows) {
    const auto count = static_cast<std::size_t>(rows * (tensor.numel() / std::max<std::int64_t>(1, tensor.size(0))));
    return std::span<float>(tensor.data_ptr<float>(), count);
  };
  gather(indices, floats(x_, samples));
  if (dataset_->target_kind() == data::TargetKind::classes) {
    const std::size_t targets = indices.size() * dataset_->target_elements();
    dataset_->gather_classes(indices, {target_.data_ptr<std::int64_t>(), targets});
  } else {
    dataset_->gather_values(indices, floats(target_, samples));
  }
  return {on_device(x_, device_x_, samples), on_device(target_, device_target_, samples)};
}

}  // namespace motley::torch_adapter
