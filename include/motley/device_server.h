#pragma once
// What a server does with gradients, in the memory of a device: that of the device itself never leaves it. Who computes
// there brings one along (DeviceModel::server).

#include <cstdint>
#include <span>
#include <vector>

#include "motley/bytes.h"
#include "motley/device_optimizer.h"
#include "motley/result.h"

namespace motley {

/// A chunk of a contribution: in the memory of the host in a codec of wire.md, or in that of the device in fp32.
struct GradientPart {
  std::uint8_t codec = 0;
  SharedBytes bytes;
};

/// A device optimizer for steps to which others contribute as well: sum(), then reduce(), whose loss is zero, then
/// update(), then download_weights(). What tasks compute with is beside it, so that what still runs does not matter.
/// Methods are called by one thread at a time, another one than computes; but settled() and has(), by any.
/// download(true) is not.
class DeviceServer : public DeviceOptimizer {
 public:
  /// Between settle() and leave().
  [[nodiscard]] virtual bool settled() const noexcept = 0;
  /// Its weights are these: a task may compute with them from there.
  [[nodiscard]] virtual bool has(std::span<const SharedBytes> weights) const = 0;
  /// The parts of each chunk, in their order, become its gradient sum. After an error, weights and state are as before.
  virtual Status sum(std::span<const std::vector<GradientPart>> chunks) = 0;
  /// By chunk, fp32, on the host.
  virtual Result<std::vector<SharedBytes>> download_weights() = 0;
  /// What of a kept gradient is in `on_device`, on the host.
  virtual Result<SharedBytes> fetch(const SharedBytes& on_device) = 0;
};

}  // namespace motley
