#pragma once
// A DeviceServer whose arithmetic is Python's. The object has
//
//   open(chunks)   (offset, elements) of each: takes the memory, or raises. From then on, until leave():
//   host: array of Layout.flat_elements float32
//   device_optimizer: what python_device_optimizer.h asks for, by way of `host`
//   download()     its weights, to `host`
//   keep() -> (owner, address, [largest magnitude by chunk]) of the gradient of the task before
//   sum(parts)     by chunk, (codec, address that keep() told) or (codec, memory of the host that is read at once)
//   fetch(address, elements), to the beginning of `host`
//
// with the meanings of motley/device_server.h.

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bindings.h"
#include "motley/device_server.h"
#include "motley/layout.h"
#include "python_device_optimizer.h"

namespace motley::python {

class PythonServer final : public DeviceServer {
 public:
  /// REQUIRES the GIL.
  PythonServer(nb::object python, Layout layout) : python_(std::move(python)), layout_(std::move(layout)) {}

  Status settle(const Snapshot& state, OptimizerKind kind) override;
  Result<StepNumbers> reduce(double weight, std::uint64_t samples) override;
  Status update(std::span<const StepScalars> groups, float factor) override;
  Result<Snapshot> download(bool aside) override;
  void leave() override;
  [[nodiscard]] bool settled() const noexcept override { return settled_; }
  [[nodiscard]] bool has(std::span<const SharedBytes> weights) const override;
  Status sum(std::span<const std::vector<GradientPart>> chunks) override;
  Result<std::vector<SharedBytes>> download_weights() override;
  Result<SharedBytes> fetch(const SharedBytes& on_device) override;

  /// The gradient of the task before, by chunk. By the thread that computes.
  Result<std::vector<SharedBytes>> keep();

 private:
  void now_has(std::vector<SharedBytes> weights);

  const Kept python_;
  const Layout layout_;
  std::span<float> host_;
  std::optional<PythonDeviceOptimizer> device_optimizer_;
  std::atomic<bool> settled_ = false;
  mutable std::mutex mutex_;
  std::vector<SharedBytes> weights_;  // with the mutex
};

}  // namespace motley::python
