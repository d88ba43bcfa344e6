#include "torch/generators.h"

#include <array>

namespace motley::torch_adapter {
namespace {

/// The generators are torch's own and live as long as the process; so do their locks. The CPU's is the first.
std::mutex& mutex_of(const at::Device& device) {
  static std::array<std::mutex, 1 + 64> mutexes;  // more cards share locks
  if (device.is_cpu()) return mutexes[0];
  const auto card = static_cast<std::size_t>(device.has_index() ? device.index() : 0);
  return mutexes[1 + card % (mutexes.size() - 1)];
}

}  // namespace

Seeded::Seeded(const at::Device& device, std::uint64_t seed) : lock_(mutex_of(device)) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard torch_lock(generator.mutex());  // torch's own, which each draw takes
  generator.set_current_seed(seed);
}

}  // namespace motley::torch_adapter
