#pragma once
// A DeviceOptimizer whose arithmetic is Python's. The object has, with the arrays of python_model.h,
//
//   settle(kind)   "sgd" | "adam": takes over the weights that are in the array `weights`
//   set_state(name), get_state(name, aside)   a vector of the optimizer's state, through the array `gradients`
//   reduce(weight, samples) -> (loss_sum, norm)     update(groups, factor)
//   get_weights(aside), into the array `weights`     leave()
//   put_aside() -> bool   what was there then is what the others have for `aside`
//
// with the meanings of motley/device_optimizer.h; a group is (lr, weight_decay, keep, momentum, fresh, beta2, fresh2,
// correction, eps, nesterov).

#include <atomic>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "motley/device_optimizer.h"
#include "motley/layout.h"

namespace motley::python {

class PythonDeviceOptimizer final : public DeviceOptimizer {
 public:
  /// Layout and arrays outlive this. REQUIRES the GIL.
  PythonDeviceOptimizer(nb::object python, const Layout& layout, std::span<float> weights, std::span<float> gradients)
      : python_(std::move(python)), layout_(layout), weights_(weights), gradients_(gradients) {}

  Status settle(const Snapshot& state, OptimizerKind kind) override;
  Result<StepNumbers> reduce(double weight, std::uint64_t samples) override;
  Status update(std::span<const StepScalars> groups, float factor) override;
  bool put_aside() override;
  Result<Snapshot> download(bool aside) override;
  void leave() override;

 private:
  template <class Call>
  auto with_python(ErrorCode code, const Call& call) -> decltype(call(nb::object()));

  const Kept python_;
  const Layout& layout_;
  std::span<float> weights_, gradients_;
  std::vector<std::string> states_;
  std::atomic<bool> whole_ = false;  // no step went wrong half way
};

}  // namespace motley::python
