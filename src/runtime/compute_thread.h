#pragma once
// The thread on which a worker computes. Takes one task at a time, turns positions into sample numbers, runs the
// computation and reports what it yields. Out of memory halves the micro-batch and runs the task again.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/stretch.h"
#include "engine/worker.h"
#include "motley/bytes.h"
#include "motley/computation.h"
#include "runtime/model_provider.h"

namespace motley::runtime {

/// Called on the compute thread.
struct ComputeEvents {
  std::function<void(std::uint64_t task, std::uint64_t done)> progress;
  std::function<void(std::uint64_t task, std::uint64_t count, double weight, double loss_sum)> begin;
  std::function<void(std::uint64_t task, ChunkId chunk, SharedBytes gradient)> chunk;
  std::function<void(std::uint64_t task, Outcome outcome, double compute_seconds)> finished;
  std::function<void(std::uint64_t task, Error error)> failed;
  std::function<void()> rested;  // steps made without asking are over
};

/// Called on the compute thread.
struct StretchEvents {
  std::function<void(engine::StretchStep step)> step;
  std::function<void(std::uint64_t number, std::optional<Error> failure)> ended;
};

/// Everything prepare() needs to build a computation; runs on the compute thread.
struct Prepared {
  std::unique_ptr<Computation> computation;
  std::uint64_t train_samples = 0;
  std::uint64_t seed = 0;
  std::uint32_t micro_batch = 0;
  bool fixed_micro_batch = false;  // layers act on groups of exactly this many samples
};

class ComputeThread {
 public:
  explicit ComputeThread(ComputeEvents events);
  ~ComputeThread();
  /// Abandons a running task and ends the thread; nothing is called after that. Not from the thread itself.
  void stop();
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  /// Builds the computation on the compute thread (libtorch wants its threads and streams there); `done` runs there
  /// too.
  void prepare(std::function<Result<Prepared>()> build, std::function<void(Result<const Layout*>)> done);
  void start(engine::TaskOrder order);
  void limit(std::uint64_t task, std::uint64_t count);
  /// Makes steps one after the other, once a task that runs has ended; waits when kStepsUntakenMax of them were not
  /// taken().
  void lend(engine::StretchOrder order, StretchEvents events);
  void cut(std::uint64_t stretch);
  void taken();
  [[nodiscard]] std::uint32_t micro_batch() const { return micro_batch_.load(); }

 private:
  class TaskSink;
  class TaskStop;
  void loop();
  void run(const engine::TaskOrder& order);
  Result<Outcome> compute(const Task& task, Weights& weights, Sink& sink, const Stop& stop);
  struct Stretch {
    engine::StretchOrder order;
    StretchEvents events;
  };
  void run_stretch(Stretch stretch);
  Result<engine::StretchStep> make_step(engine::Soloist& soloist, std::vector<std::uint64_t>& indices);
  bool may_go_on(std::uint64_t stretch);

  ComputeEvents events_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<engine::TaskOrder> next_;
  std::function<void()> preparation_;
  std::optional<Stretch> stretch_;
  std::uint64_t cut_ = 0;      // the newest stretch that is to end
  std::uint32_t untaken_ = 0;  // steps handed out and not taken
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> current_task_{0};
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint32_t> micro_batch_{0};
  Prepared prepared_;  // compute thread only
  BufferPool pool_;
  std::thread thread_;
};

}  // namespace motley::runtime
