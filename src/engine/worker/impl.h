#pragma once
// The inside of engine::Worker: what it keeps of the session and of the task that runs. Threading: as Worker.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/worker.h"
#include "engine/loss_state.h"
#include "engine/worker/gradients.h"
#include "engine/worker/report.h"
#include "engine/worker/weights.h"
#include "engine/worker/worker.h"
#include "plan/time_model.h"

namespace motley::engine {

struct Worker::Impl {
  Impl(const WorkerOptions& worker_options, WorkerOutput& worker_output)
      : options(worker_options),
        output(worker_output),
        machine({options.timeouts.heartbeat, options.timeouts.silence}),
        weights(options.instructions),
        gradients(output, feedback) {}

  void decide(const cluster::WorkerEvent& happened, Time now);
  void perform(const cluster::WorkerAction& action, Time now);
  void send(const wire::Message& message);
  void send_chunk(const wire::Grant& lease, ChunkId chunk, const SharedBytes& gradient, Time now);
  void send_finish(const cluster::WorkerAction& action);
  void start_task(const cluster::WorkerAction& action, Time now);
  void disconnect(const cluster::WorkerAction& action);
  void on_control(const wire::Frame& frame, Time now);
  void on_message(const wire::Message& message, Time now);
  void on_spec(const wire::RunSpec& spec, Time now);
  void on_weights(const wire::Frame& frame, Time now);
  void on_blob(const wire::Frame& frame, Time now);
  void malformed(Error error, Time now);
  void offer_spec(Time now);
  void drop_buffered(Time now);

  WorkerOptions options;
  WorkerOutput& output;
  cluster::WorkerMachine machine;

  // Of the session.
  std::uint64_t run = 0;
  std::uint64_t fence = 0;
  bool checksums = true;  // on the channel that is open
  bool admitted = false;
  std::optional<std::uint64_t> buffered_fence;  // of weights that overtook Admitted
  std::uint64_t heartbeat_heard_ns = 0;
  std::optional<wire::RunSpec> spec;
  SharedBytes script_files;
  BlobAssembler blob;
  WeightsAssembler weights;
  LossStateAssembler state;
  std::optional<Layout> layout;
  Compared compared;
  SampleCounts samples;
  std::optional<plan::Affine> known_speed;  // of an earlier run
  std::vector<double> wire_seconds;         // see Ready
  std::optional<Error> why;                 // of the disconnect under way
  ErrorFeedback feedback;                   // outlives sessions
  GradientSender gradients;

  // Of the running task.
  struct Arriving {
    std::uint64_t task = 0, version = 0;
  };
  std::optional<Arriving> arriving;  // while weights of it are on their way
  TaskReport report;
  DelegationEvents delegated;  // who is told of steps made without asking
  std::string failure;
};

}  // namespace motley::engine
