#pragma once
// The one loop over the micro-batches of a task: how far it goes, what is claimed, in which order it is cut, when the
// range is frozen and when chunks of the gradient leave. The model computes; time passes in Weights, Stop and the
// model. One thread, apart from what Finals allows.

#include <cstdint>
#include <optional>
#include <utility>

#include "compute/chunk_publisher.h"
#include "compute/pass_sizes.h"
#include "compute/task_io.h"
#include "compute/weight_loader.h"
#include "motley/device_model.h"

namespace motley::compute {

class TaskLoop final : private Finals {
 public:
  /// `model` outlives this.
  explicit TaskLoop(DeviceModel& model);
  TaskLoop(const TaskLoop&) = delete;
  TaskLoop& operator=(const TaskLoop&) = delete;
  ~TaskLoop() override = default;

  /// The next task has other weights than the one before, even at the same version.
  void forget_weights() noexcept { loader_.forget(); }
  /// The whole task. All of them live until it returns. Errors: those of the model.
  Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop);

  // Its pieces, for a driver under whose clock time passes between them: open(), then compute() as often as claim()
  // is not 0, then close().
  void open(const Task& task, Weights& weights, Sink& sink, const Stop& stop);
  /// Samples of the next micro-batch, which is claimed.
  std::uint64_t claim();
  /// That one. Needs weights when it begins, not before.
  void compute();
  /// What is claimed and not computed is abandoned.
  Result<Outcome> close();
  /// Why the newest task failed, where the device is to be taken care of and did wrong.
  [[nodiscard]] const std::optional<Fault>& fault() const noexcept { return fault_; }
  [[nodiscard]] std::optional<Fault> take_fault() { return std::exchange(fault_, std::nullopt); }

 private:
  void await_weights();
  void start();
  void begin();
  void begin_if_last();
  void finish();
  void take_sums();
  [[nodiscard]] std::uint64_t limit() const;
  [[nodiscard]] PassCut next_cut(std::uint64_t limit) const;
  [[nodiscard]] std::uint64_t next_group_pass(std::uint64_t left, std::uint64_t partial, std::uint64_t whole) const;
  [[nodiscard]] MicroBatch micro_batch(PassCut cut, std::uint64_t limit) const;
  [[nodiscard]] std::uint64_t partial_group() const;
  [[nodiscard]] bool trains() const { return task_->kind != PassKind::evaluate; }
  [[nodiscard]] bool publishes() const { return gives_gradient(task_->kind) && !task_->resident && !task_->kept; }
  [[nodiscard]] bool goes_on() const { return !abandoned_ && !failure_; }
  void keep(const Status& status);
  void believe();
  void placement_final(std::size_t placement) noexcept override { publisher_.placement_final(placement); }

  DeviceModel& model_;
  WeightLoader loader_;
  ChunkPublisher publisher_;
  Flow flow_;
  Care care_;
  // Of the task.
  const Task* task_ = nullptr;
  Sink* sink_ = nullptr;
  const Stop* stop_ = nullptr;
  std::uint32_t group_ = 0;
  Outcome outcome_;
  PassCut claimed_;           // the next micro-batch
  std::uint64_t wanted_ = 0;  // samples of the task by then
  bool started_ = false, begun_ = false, abandoned_ = false;
  std::optional<Error> failure_;
  std::optional<Fault> fault_;
};

}  // namespace motley::compute
