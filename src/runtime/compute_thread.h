#pragma once
// The thread on which a worker computes. Takes one task at a time, turns positions into sample numbers, has the
// task loop run it and reports what it yields. The micro-batch is the largest that fits the device's memory, up to what
// the device is fast with. Out of memory halves it and runs the task again. With a share of the device's time it rests
// between micro-batches; the rest for the last one comes before the next task.

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

#include "compute/device_care.h"
#include "compute/memory_growth.h"
#include "compute/pass_sizes.h"
#include "compute/task_loop.h"
#include "compute/task_range.h"
#include "engine/local/local_steps.h"
#include "engine/local/soloist.h"
#include "engine/task_order.h"
#include "motley/bytes.h"
#include "motley/device_model.h"
#include "motley/device_server.h"
#include "plan/micro_batch.h"
#include "runtime/duty_cycle.h"
#include "runtime/model_provider.h"
#include "runtime/resource_policy.h"
#include "runtime/task_weights.h"

namespace motley::runtime {

/// Called on the compute thread. `compute_seconds` include the rest that belongs to the work, and not what the task
/// waited for weights.
struct ComputeEvents {
  std::function<void(std::uint64_t task, std::uint64_t done)> progress;
  std::function<void(std::uint64_t task, std::uint64_t count, engine::Begun begun)> begin;
  std::function<void(std::uint64_t task, ChunkId chunk, SharedBytes gradient)> chunk;
  std::function<void(std::uint64_t task, Outcome outcome, double compute_seconds, double waited_seconds)> finished;
  std::function<void(std::uint64_t task, Error error)> failed;
  /// For people; may be empty.
  std::function<void(const std::string& text)> note{};
  /// The device computes no more, for this reason. After failed(), if that was in a task; may be empty.
  std::function<void(Error error)> out{};
  /// This process has taken so much memory that another one had better go on; may be empty.
  std::function<void(Error error)> grown{};
};

/// Called on the compute thread.
struct DelegatedStepEvents {
  std::function<void(engine::DelegatedStep step)> step;
  std::function<void(engine::DelegationEnd end)> ended;
};

/// Everything prepare() needs to build a model; runs on the compute thread.
struct Prepared {
  std::unique_ptr<DeviceModel> model;
  std::uint64_t train_samples = 0;
  std::uint64_t seed = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t group = 1;          // samples that layers act on together: micro-batches are multiples of it
  bool chosen_micro_batch = false;  // by the user: it stays wherever it fits
  std::uint64_t reserve_bytes = 0;  // of that memory, which others will want as the run goes on
  bool shuffle = true;              // train passes; else samples come in the order of the data set
  std::optional<engine::LocalRules> local_steps{};  // of a run in rounds
};

class ComputeThread {
 public:
  explicit ComputeThread(ComputeEvents events, ResourcePolicy resource_policy = {});
  ~ComputeThread();
  /// Abandons a running task and ends the thread; nothing is called after that. Not from the thread itself.
  void stop();
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  /// Builds the model on the compute thread (torch wants its threads and streams there); `done` runs there
  /// too.
  void prepare(std::function<Result<Prepared>()> build, std::function<void(Result<const Layout*>)> done);
  void start(engine::TaskOrder order);
  /// Weights that the order did not have.
  void arrived(std::uint64_t task, ChunkId chunk, SharedBytes weights);
  /// Moves the limit of a task that runs; returns the one that holds, see compute::TaskRange. 0: it does not run.
  std::uint64_t limit(std::uint64_t task, std::uint64_t count);
  /// No further micro-batch; cuts a rest short.
  void finish_early(std::uint64_t task);
  /// Makes steps one after the other, once a task that runs has ended; waits when kStepsUntakenMax of them were not
  /// taken(). REQUIRES all of the device's time: rests are for tasks.
  void delegate(engine::DelegatedSteps order, DelegatedStepEvents events);
  void cut(std::uint64_t delegation);
  void taken();
  /// Calls `idle` once, on any thread, when nothing is being computed and nothing waits to be.
  void when_idle(std::function<void()> idle);
  /// Of the model, once that is prepared.
  [[nodiscard]] std::shared_ptr<DeviceServer> server();
  [[nodiscard]] std::uint32_t micro_batch() const { return micro_batch_.load(); }

 private:
  class TaskSink;
  class TaskStop;
  void loop();
  [[nodiscard]] bool waiting() const { return next_ || delegation_ || preparation_; }
  void tell_idle();
  Status find_micro_batch();
  Result<MemoryUse> try_samples(std::uint64_t count);
  void run(const engine::TaskOrder& order);
  void keep_on_device(const engine::TaskOrder& order, Task& task);
  Status hand_out_kept(std::uint64_t task);
  void run_probe(const engine::TaskOrder& order);
  void run_local_steps(const engine::TaskOrder& order);
  Status make_local_steps(const engine::TaskOrder& order, TaskSink& sink, const Stop& stop);
  std::vector<SharedBytes> weights_of_round();
  [[nodiscard]] bool weights_are_here() const;
  void rest(const TaskSink& sink);
  void learn(const Outcome& outcome, double took);
  Status try_passes(const LossState& state);
  void set_passes(compute::PassSizes sizes);
  bool take_shorter_passes();
  bool computes_on(const Fault& fault);
  void watch_pace(const Outcome& outcome, double took);
  void watch_memory();
  void say(const std::string& text) const;
  void failed(std::uint64_t task, const Error& error);
  bool take_less();
  /// In smaller micro-batches where the memory does not suffice; `restart` is called when it did not go to its end.
  Result<Outcome> compute(const Task& task, Weights& weights, Sink& sink, const Stop& stop,
                          const std::function<void()>& restart);
  /// The samples of its next step, which `task` says.
  Result<Outcome> compute(Task task, engine::LocalTrainer& trainer, const Stop& stop);
  struct Delegation {
    engine::DelegatedSteps order;
    DelegatedStepEvents events;
  };
  void run_delegation(Delegation delegation);
  Result<engine::DelegatedStep> make_step(engine::Soloist& soloist, std::vector<std::uint64_t>& indices);
  bool may_go_on(std::uint64_t delegation);
  static std::optional<Error> download(const engine::LocalTrainer& trainer, ps::Snapshot& after);

  ComputeEvents events_;
  ResourcePolicy resource_policy_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<engine::TaskOrder> next_;
  std::function<void()> preparation_;
  std::optional<Delegation> delegation_;
  std::shared_ptr<DeviceServer> server_;
  bool busy_ = false;
  std::vector<std::function<void()>> idle_;  // to be called
  std::uint64_t cut_ = 0;                    // the newest delegation that is to end
  std::uint32_t untaken_ = 0;                // steps handed out and not taken
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> current_task_{0};
  compute::TaskRange range_;  // of the current task; with the mutex
  std::atomic<std::uint32_t> micro_batch_{0};
  // Of the compute thread only.
  Prepared prepared_;
  std::optional<compute::TaskLoop> loop_;    // over its model
  std::optional<engine::LocalSteps> local_;  // in rounds: its optimizer's state stays from one to the next
  compute::DeviceCare care_;
  compute::MemoryGrowth growth_;
  Time grown_asked_{};
  std::uint32_t most_ = 0, odd_ = 0;  // samples of a pass at most; of the other size of pass, where there are two
  bool passes_tried_ = false;
  std::optional<Error> out_;  // why the device computes no more
  DutyCycle duty_;
  TaskWeights weights_{duty_};              // of the current task
  std::optional<plan::MicroBatch> search_;  // where the micro-batch follows the memory
  Time memory_asked_{};
  BufferPool pool_;
  std::thread thread_;
};

}  // namespace motley::runtime
