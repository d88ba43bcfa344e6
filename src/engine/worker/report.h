#pragma once
// What is known of the task that a worker computes, as far as the coordinator is told: what Begin and Finish say, which
// chunks of its gradient went out, and the speed that follows from tasks. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "compute/task_io.h"
#include "engine/worker/worker.h"
#include "motley/bytes.h"
#include "motley/layout.h"
#include "plan/time_model.h"
#include "wire/messages.h"

namespace motley::engine {

class TaskReport {
 public:
  /// A task begins whose gradient has so many chunks.
  void started(std::size_t chunks, Time now);
  void begun(const Begun& begun) noexcept { begun_ = begun; }
  /// True: it goes out now. The last one closes the step, and Finish tells what the step took: that goes ahead.
  /// REQUIRES a chunk of the task that did not come before.
  bool chunk(ChunkId chunk, const SharedBytes& gradient);
  [[nodiscard]] std::size_t chunks() const noexcept { return sent_.size(); }
  [[nodiscard]] std::size_t missing() const noexcept { return missing_; }
  /// `learns`: it is a measurement of the device. `waited_seconds`: for weights.
  void finished(const Outcome& outcome, double compute_seconds, double waited_seconds, bool learns, Time now);
  void failed(Time now) noexcept { idle_since_ = now; }
  /// A step that the worker made by itself.
  void made_step(std::uint64_t samples, double compute_seconds, Time now);
  /// Once.
  std::optional<std::pair<ChunkId, SharedBytes>> take_last_chunk() noexcept {
    return std::exchange(last_, std::nullopt);
  }

  [[nodiscard]] wire::Begin begin(const wire::Grant& lease, std::uint64_t count) const;
  /// Of a lease of which so many samples were computed.
  [[nodiscard]] wire::Finish finish(const wire::Grant& lease, std::uint64_t count) const;
  /// Learned from the passes of this session; empty while they are few.
  [[nodiscard]] std::optional<plan::Affine> speed() const;

 private:
  void learn(std::uint64_t samples, double compute_seconds);

  std::vector<bool> sent_;
  std::size_t missing_ = 0;
  std::optional<std::pair<ChunkId, SharedBytes>> last_;
  Begun begun_;
  Outcome outcome_;
  double compute_seconds_ = 0, wait_seconds_ = 0;
  Time idle_since_{};
  plan::TimeModel model_;
  std::uint32_t records_ = 0;
};

}  // namespace motley::engine
