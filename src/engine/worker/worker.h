#pragma once
// The worker without threads, sockets, clock or files: cluster::Worker (the state machine) and the frames. Starts where
// the authenticated channel starts. The computation runs elsewhere (a thread in runtime/, a timed event in sim/) and
// reports back. One thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/batch_plan.h"
#include "base/time.h"
#include "cluster/worker.h"
#include "codec/delta.h"
#include "compute/task_io.h"
#include "engine/link.h"
#include "engine/local/local_worker.h"
#include "engine/task_order.h"
#include "engine/worker/grant_check.h"
#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "plan/codec_cost.h"
#include "plan/time_model.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::engine {

struct WorkerOptions {
  Timeouts timeouts;
  const codec::Kernels* instructions = nullptr;  // that add what changes of the weights; null: the fastest
};

class WorkerOutput {
 public:
  virtual ~WorkerOutput() = default;
  virtual void send(wire::Frame frame, Lane lane) = 0;
  /// Build the model, open the data; then call prepared() or prepare_failed(). The same spec may come again after a
  /// reconnect (same hash of config and model): then what is there may be kept.
  virtual void prepare(const wire::RunSpec& spec, const SharedBytes& script_files) = 0;
  virtual void start_task(TaskOrder order) = 0;  // only when no task runs
  /// A chunk that TaskOrder::weights did not have. Where one does not come, the task is abandoned.
  virtual void weights_arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) = 0;
  /// Stop::limit(); 0 abandons. Unless it does, answer task_limited().
  virtual void limit_task(std::uint64_t number, std::uint64_t count) = 0;
  /// The micro-batch in hand is the last. Where none was begun, the task ends with a count of 0.
  virtual void finish_early(std::uint64_t number) = 0;
  /// Make these steps one after the other, once a task that runs has ended; then call delegated_step() and
  /// delegation_ended(). Only where a coordinator of the same process delegates.
  virtual void make_steps(DelegatedSteps order) = 0;
  /// End that after the step in hand.
  virtual void end_steps(std::uint64_t number) = 0;
  virtual void admitted(std::uint64_t worker) = 0;
  virtual void step_done(std::uint64_t version, std::uint64_t samples_mine) = 0;  // for the display
  /// The channel must be closed, if it is not. Exactly once for each connected() (and once for leave() without a
  /// channel). `reconnect`: try again with a new session; else the worker ends: well if `why.message` is empty (the run
  /// is done, or it left as asked), with `why` otherwise.
  virtual void disconnect(bool reconnect, const Error& why) = 0;
};

/// What its Ready says beside the layout, as the coordinator compares it.
struct Compared {
  std::string train_fingerprint{}, test_fingerprint{}, script{};
  std::uint64_t numbers = 0;
};

class Worker {
 public:
  Worker(const WorkerOptions& options, WorkerOutput& output);
  ~Worker();

  /// A new authenticated channel, fence unknown yet. `checksums`: of the bodies of what it sends.
  void connected(Time now, bool checksums = true);
  void frame(const wire::Frame& frame, Time now);
  void disconnected(const std::string& why, Time now);
  /// `samples`: what leases may ask for. `speed`: of this device with this model, if an earlier run learned it.
  void prepared(const Layout& layout, Compared compared, SampleCounts samples, std::optional<plan::Affine> speed,
                Time now);
  /// What numbers on the wire cost this machine, where a codec is open. Before prepared().
  void knows_wire(const plan::EndCost& cost);
  void prepare_failed(const Error& error, Time now);
  /// The device computes no more, in no session.
  void device_out(const Error& error, Time now);

  // From the computation, in the order of Sink's contract. Results of an old task number are dropped.
  void task_progress(std::uint64_t number, std::uint64_t done, Time now);
  /// No more than `count` samples will be computed, unless limit_task() says so.
  void task_limited(std::uint64_t number, std::uint64_t count, Time now);
  void task_begin(std::uint64_t number, std::uint64_t count, const Begun& begun, Time now);
  void task_chunk(std::uint64_t number, ChunkId chunk, const SharedBytes& gradient, Time now);
  /// `waited_seconds`: for weights, meanwhile; no part of `compute_seconds`.
  void task_finished(std::uint64_t number, const Outcome& outcome, double compute_seconds, double waited_seconds,
                     Time now);
  void task_failed(std::uint64_t number, const Error& error, Time now);

  /// From the coordinator of the same process: see LocalWorker.
  void delegate(DelegatedSteps order, DelegationEvents events);
  void cut(std::uint64_t number);
  /// From the computation, in order. `taken`: see DelegationEvents.
  void delegated_step(DelegatedStep step, std::function<void()> taken, Time now);
  void delegation_ended(DelegationEnd end);

  /// More came on the lanes of weights, if not a whole frame: on a slow link one takes seconds.
  void bytes_came(Time now);
  void tick(Time now);   // at least every 100 ms
  void leave(Time now);  // Ctrl-C: Yield, finish the micro-batch in hand, then disconnect(false)
  /// The same, but ends with disconnect(true). REQUIRES a channel.
  void step_aside(Time now);

  [[nodiscard]] cluster::WorkerState state() const;
  /// Learned from the passes of this session; empty while they are few.
  [[nodiscard]] std::optional<plan::Affine> speed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::engine
