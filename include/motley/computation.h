#pragma once
// The one interface between the engine and whoever computes gradients. Torch-free: anything able to return the sum of
// gradients over some samples can be a worker.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"

namespace motley {

namespace ps {
class Residence;
}

/// What the loss of a script gets beside the samples. Each number has its bytes, and the highest holds; 0: there is
/// none.
struct LossState {
  std::uint64_t number = 0;
  SharedBytes bytes{};
};

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
  bool from_end = false;   // computed from the last sample downwards: what is done is the end of `indices`
  /// Train passes: position p of the pass is position `order_first + p` of this epoch's sample order.
  std::uint64_t epoch = 0, order_first = 0;
  /// With the weights of Computation::residence(), where the gradient stays: the sink gets begin() and progress()
  /// alone.
  bool resident = false;
  LossState state{};

  /// `count` samples after the first `done`: where they start in `indices`.
  [[nodiscard]] std::uint64_t at(std::uint64_t done, std::uint64_t count) const noexcept {
    return from_end ? indices.size() - done - count : done;
  }
};

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
  /// Of the budget, what libraries will take that nobody counts, once more than a few samples go at once.
  std::uint64_t scratch = 0;
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
  /// Where weights, gradient and optimizer state can stay for many steps; nullptr: the device's memory is the host's.
  virtual ps::Residence* residence() { return nullptr; }
  /// Blocking; called by one thread. Errors: memory (the caller halves the micro-batch and retries), internal.
  virtual Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) = 0;
};

}  // namespace motley
