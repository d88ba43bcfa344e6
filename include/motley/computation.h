#pragma once
// The one interface between the engine and whoever computes gradients. Torch-free: anything able to return the sum of
// gradients over some samples can be a worker.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "motley/layout.h"
#include "motley/result.h"

namespace motley {

enum class PassKind : std::uint8_t { train = 1, evaluate = 2, calibrate = 3 };

/// What to compute: the samples `indices` (numbers in the data set), which are the positions
/// [first, first + indices.size()) of the pass.
struct Task {
  PassKind kind = PassKind::train;
  std::uint64_t version = 0;
  std::span<const std::uint64_t> indices;
  std::uint64_t first = 0;
  std::uint32_t micro_batch = 0;  // samples per forward pass, > 0
  std::uint64_t seed = 0;  // of the run; dropout is reseeded per micro-batch from (seed, version, first position)
};

/// The weights at Task::version. Spans stay valid until run() returns.
class Weights {
 public:
  virtual ~Weights() = default;
  virtual std::span<const float> get(ChunkId chunk) = 0;
};

/// How far the task may go. Asked on the thread of run() between micro-batches, when the device is done with them and
/// their progress was reported; may take its time to answer, for the device to rest.
class Stop {
 public:
  virtual ~Stop() = default;
  /// Samples of the task still wanted, counted from its first; at most indices.size(); 0 abandons the task.
  [[nodiscard]] virtual std::uint64_t limit() const noexcept = 0;
};

/// Takes what a task yields. Every method may be called from any thread, never blocks and never throws.
class Sink {
 public:
  virtual ~Sink() = default;
  /// `done` samples have been through forward and backward.
  virtual void progress(std::uint64_t done) noexcept = 0;
  /// Train passes, once, after the last forward pass and before the first ready(): freezes the range to the first
  /// `count` samples. `weight` = number of loss-bearing items, `loss_sum` = sum of their losses.
  virtual void begin(std::uint64_t count, double weight, double loss_sum) noexcept = 0;
  /// The **sum** of gradients over the range is final for this chunk. The span has the chunk's elements and is read
  /// before ready() returns. In the statistics chunk: sum(n*mean) and sum(n*(var+mean^2)) of the batch statistics.
  virtual void ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept = 0;
};

struct Outcome {
  std::uint64_t count = 0;  // samples done; less than asked if stopped
  double weight = 0;        // loss-bearing items
  double loss_sum = 0;
  std::uint64_t correct = 0;     // evaluate passes of classifiers
  std::vector<double> scores{};  // evaluate passes: whatever else is summed over samples, in an order all workers share
};

struct Capabilities {
  std::string device;               // "cpu", "cuda:0", "mps"
  std::string description;          // "NVIDIA GeForce RTX 4070 Ti", "AMD EPYC, 2 threads"
  std::uint32_t micro_batch = 256;  // a good default for this device
};

/// Bytes of the memory of the device that computes.
struct MemoryUse {
  std::uint64_t used = 0;    // now
  std::uint64_t peak = 0;    // the most since the last time it was asked
  std::uint64_t budget = 0;  // what may be used in all; 0: unknown
};

class Computation {
 public:
  virtual ~Computation() = default;
  [[nodiscard]] virtual const Layout& layout() const = 0;
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  /// Between runs, by the thread that calls run(). From then on, of the budget, `for_others` bytes are used only while
  /// they must be, and not kept for reuse.
  virtual MemoryUse memory(std::uint64_t for_others) {
    static_cast<void>(for_others);
    return {};
  }
  /// Blocking; called by one thread. Errors: memory (the caller halves the micro-batch and retries), internal.
  virtual Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) = 0;
};

}  // namespace motley
