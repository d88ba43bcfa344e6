#pragma once
// Between a task of the compute thread and whoever waits for it. Private to compute_*.cpp.

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "runtime/compute_thread.h"

namespace motley::runtime {

// Passes results on, once each: after an out-of-memory retry the range and the chunks that went out already stand.
class ComputeThread::TaskSink final : public Sink {
 public:
  TaskSink(ComputeThread& thread, std::uint64_t task)
      : thread_(thread), events_(thread.events_), task_(task), sent_(thread.weights_.chunks()) {}
  void progress(std::uint64_t done) noexcept override {
    done_ = done;
    events_.progress(task_, done);
  }
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override {
    begin(count, engine::Begun{weight, loss_sum});
  }
  void begin(std::uint64_t count, const engine::Begun& begun) noexcept {
    MOTLEY_ASSERT(count > 0);
    {
      const std::lock_guard lock(thread_.mutex_);
      if (thread_.range_.frozen()) return;
      thread_.range_.freeze(count);
    }
    begun_ = true;
    events_.begin(task_, count, begun);
  }
  void ready(ChunkId chunk, std::span<const float> gradient) noexcept override {
    MOTLEY_ASSERT(begun_ && chunk < sent_.size());
    if (sent_[chunk].exchange(true)) return;
    MutableBytes copy = thread_.pool_.take(gradient.size_bytes());
    std::memcpy(copy.bytes().data(), gradient.data(), gradient.size_bytes());
    events_.chunk(task_, chunk, std::move(copy).seal());
  }
  /// The task starts from its first sample again.
  void restart() noexcept { done_ = 0; }
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }

 private:
  ComputeThread& thread_;
  const ComputeEvents& events_;
  std::uint64_t task_;
  std::vector<std::atomic<bool>> sent_;
  bool begun_ = false;
  std::atomic<std::uint64_t> done_{0};
};

// The range of the task, and the place to rest: before the next micro-batch is claimed.
class ComputeThread::TaskStop final : public Stop {
 public:
  TaskStop(ComputeThread& thread, const TaskSink& sink) : thread_(thread), sink_(sink) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override {
    const std::lock_guard lock(thread_.mutex_);
    return thread_.range_.limit();
  }
  [[nodiscard]] bool claim(std::uint64_t count) const noexcept override {
    if (thread_.resource_policy_.duty < 1) thread_.rest(sink_);
    const std::lock_guard lock(thread_.mutex_);
    return thread_.range_.claim(count);
  }

 private:
  ComputeThread& thread_;
  const TaskSink& sink_;
};

}  // namespace motley::runtime
