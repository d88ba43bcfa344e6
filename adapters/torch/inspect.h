#pragma once
// What a model consists of: its layout, found with a few trial passes on the CPU. Not thread-safe.

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "motley/layout.h"
#include "motley/result.h"
#include "torch/model.h"

namespace motley::torch_adapter {

struct InspectedModel {
  std::unique_ptr<Model> model;  // in its initial state, on the CPU
  Layout layout;                 // entry i is model->tensors()[i]
  bool acts_on_groups = false;   // BatchNorm, dropout
  bool draws_random_numbers = false;
};

/// May throw; callers run inside guarded().
Result<InspectedModel> inspect(const ModelSpec& spec);

using builtin::find_loss;
using builtin::Loss;
/// One loss per target element: [n] for classes, [n * targets] where a sample has several, the output's shape for mse.
/// Throws where shapes do not fit.
at::Tensor losses_of(Loss loss, const at::Tensor& output, const at::Tensor& target);

}  // namespace motley::torch_adapter
