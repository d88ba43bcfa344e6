#pragma once
// A DeviceModel, driven by the task loop, for who still expects a Computation. One thread.

#include <memory>

#include "compute/task_loop.h"

namespace motley::compute {

class LoopComputation final : public Computation {
 public:
  explicit LoopComputation(std::unique_ptr<DeviceModel> model) : model_(std::move(model)), loop_(*model_) {}
  [[nodiscard]] const Layout& layout() const override { return model_->layout(); }
  [[nodiscard]] Capabilities capabilities() const override { return model_->capabilities(); }
  MemoryUse memory(std::uint64_t for_others) override { return model_->memory(for_others); }
  ps::Residence* residence() override { return model_->residence(); }
  Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) override {
    return loop_.run(task, weights, sink, stop);
  }

 private:
  std::unique_ptr<DeviceModel> model_;
  TaskLoop loop_;
};

}  // namespace motley::compute
