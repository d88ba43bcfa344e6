#pragma once
// How much of a device's memory tensors have, and how much they may have. By the thread that computes on the device.

#include <torch/torch.h>

#include "motley/device_model.h"

namespace motley::torch_adapter {

/// On the CPU torch is held to the budget from now on, and keeps no blocks idle in the part that is for others.
MemoryUse memory_of(const at::Device& device, std::uint64_t for_others);

}  // namespace motley::torch_adapter
