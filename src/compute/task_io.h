#pragma once
// What goes into a task and what comes out, for whoever has the task loop run one.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "motley/layout.h"
#include "motley/task.h"

namespace motley {

/// The weights at Task::version. Spans stay valid until run() returns. For the thread of run().
class Weights {
 public:
  virtual ~Weights() = default;
  /// Waits for a chunk that is still on its way. Empty: the task is abandoned, Stop::limit() is 0.
  virtual std::span<const float> get(ChunkId chunk) = 0;
  /// Whether get() would answer at once.
  [[nodiscard]] virtual bool here(ChunkId /*chunk*/) const { return true; }
};

/// How far the task may go: the answers may be higher or lower than the last time. Asked on the thread of run().
class Stop {
 public:
  virtual ~Stop() = default;
  /// Samples of the task wanted in all, counted from its first (from_end: from its last); at most indices.size(); 0
  /// abandons the task.
  [[nodiscard]] virtual std::uint64_t limit() const noexcept = 0;
  /// Called before the micro-batch that ends at `count` samples: from here on the limit stays at `count` or above,
  /// unless the task is abandoned. False: it is lower by now, ask again. Called when the device is done with what comes
  /// before and its progress was reported; may take its time to answer, for the device to rest. Who never lowers the
  /// limit can leave this as it is.
  [[nodiscard]] virtual bool claim(std::uint64_t /*count*/) const noexcept { return true; }
};

/// Of a task that is to be computed whole.
class NoStop final : public Stop {
 public:
  [[nodiscard]] std::uint64_t limit() const noexcept override { return std::numeric_limits<std::uint64_t>::max(); }
};

/// Takes what a task yields. Every method may be called from any thread, never blocks and never throws.
class Sink {
 public:
  virtual ~Sink() = default;
  /// `done` samples have been through forward and backward.
  virtual void progress(std::uint64_t done) noexcept = 0;
  /// Train passes, once, after the last forward pass and before the first ready(): freezes the range to the first
  /// `count` samples (from_end: the last). `weight` = number of loss-bearing items, `loss_sum` = sum of their losses.
  virtual void begin(std::uint64_t count, double weight, double loss_sum) noexcept = 0;
  /// The **sum** of gradients over the range is final for this chunk. The span has the chunk's elements and is read
  /// before ready() returns. In the statistics chunk: sum(n*mean) and sum(n*(var+mean^2)) of the batch statistics.
  virtual void ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept = 0;
};

struct Outcome {
  std::uint64_t count = 0;  // samples done; less than asked if stopped
  double weight = 0;        // loss-bearing items
  double loss_sum = 0;
  std::uint64_t correct = 0;      // evaluate passes of classifiers
  std::uint32_t micro_batch = 0;  // samples of a forward pass, if there are enough
  std::vector<double> scores{};  // evaluate passes: whatever else is summed over samples, in an order all workers share
  std::vector<float> probe{};    // of a probe (compute/probe.h)
};

}  // namespace motley
