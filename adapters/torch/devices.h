#pragma once
// Devices by name. Thread-safe.

#include <torch/torch.h>

#include <string>

#include "motley/result.h"

namespace motley::torch_adapter {

/// The device called `name` ("cpu", "cuda:1", "mps"), if this machine has it.
Result<at::Device> find_device(const std::string& name);

}  // namespace motley::torch_adapter
