#pragma once
// Brings samples from a data set to the device, through buffers that are used again and again. One thread at a time;
// the tensors of a batch are valid until the next read().

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace motley::torch_adapter {

class SampleReader {
 public:
  struct Batch {
    at::Tensor x;
    at::Tensor target;  // int64 [n], or [n, target_elements] where a sample has several; float [n, target_elements]
  };

  SampleReader(std::shared_ptr<const data::Dataset> dataset, const at::Device& device, bool staged);
  Batch read(std::span<const std::uint64_t> indices);

 private:
  void grow(std::int64_t samples);
  void gather(std::span<const std::uint64_t> indices, std::span<float> x) const;
  at::Tensor on_device(const at::Tensor& host, at::Tensor& device_buffer, std::int64_t samples);

  std::shared_ptr<const data::Dataset> dataset_;
  at::Device device_;
  bool staged_;
  std::int64_t capacity_ = 0;
  at::Tensor x_, target_;                // on the host, pinned for CUDA
  at::Tensor device_x_, device_target_;  // only when staged
};

}  // namespace motley::torch_adapter
