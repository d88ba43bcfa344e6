#pragma once
// The weights of the task that runs, some of which may still be on their way. The time the computation waits for them
// is no work.

#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "base/time.h"
#include "compute/task_io.h"
#include "motley/bytes.h"
#include "runtime/duty_cycle.h"

namespace motley::runtime {

class TaskWeights final : public Weights {
 public:
  /// `duty`: is stopped while get() waits; used by the thread that calls it alone.
  explicit TaskWeights(DutyCycle& duty) : duty_(duty) {}

  // From any thread.
  /// Of a new task: by chunk, empty where they come later.
  void reset(std::vector<SharedBytes> chunks);
  void arrived(ChunkId chunk, SharedBytes weights);
  /// Nobody waits any longer.
  void abandon();

  // From the thread that computes.
  std::span<const float> get(ChunkId chunk) override;
  [[nodiscard]] bool here(ChunkId chunk) const override;
  [[nodiscard]] std::size_t chunks() const;
  /// For weights, since the last reset().
  [[nodiscard]] Duration waited() const { return waited_; }

 private:
  DutyCycle& duty_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<SharedBytes> chunks_;
  bool abandoned_ = false;
  Duration waited_{};
};

}  // namespace motley::runtime
