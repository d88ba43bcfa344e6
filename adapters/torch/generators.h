#pragma once
// torch has one generator of random numbers a device and process, and the workers of a process share it. Thread-safe.

#include <torch/torch.h>

#include <cstdint>
#include <mutex>

namespace motley::torch_adapter {

/// Seeds the generator of the device, and keeps other users of Seeded on this device waiting while it lives: what is
/// drawn then depends on the seed alone. Not recursive. Devices do not wait for each other.
class Seeded {
 public:
  Seeded(const at::Device& device, std::uint64_t seed);

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace motley::torch_adapter
