#pragma once
// Private to coordinator*.cpp: the parts of the coordinator, and the loop in which what happened becomes actions, which
// are done, and answer with what happened then. One thread at a time.

#include <optional>
#include <string>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "engine/head/coordinator.h"
#include "engine/head/delegator.h"
#include "engine/head/evaluations.h"
#include "engine/head/inbox.h"
#include "engine/head/noise.h"
#include "engine/head/outbox.h"
#include "engine/head/performance.h"
#include "engine/head/sessions.h"
#include "engine/head/sketches.h"
#include "engine/head/state.h"
#include "engine/head/steps.h"
#include "engine/head/uploads.h"
#include "engine/head/weights_sender.h"
#include "engine/probes.h"

namespace motley::engine {

struct Coordinator::Impl {
  Impl(CoordinatorOptions given, ps::Server start, CoordinatorOutput& out);

  void feed(const modes::Event& event);
  [[nodiscard]] Feed feeder() {
    return [this](const modes::Event& event) { feed(event); };
  }
  void perform(const modes::Action& action);
  void finish();
  void perform_here(const modes::Action& action);
  void perform_in_background(const modes::Action& action);

  void choose_place();
  bool make_on_device();
  bool here(const Status& brought);
  bool reduce(ChunkId chunk);
  void finish_chunk(ChunkId chunk);
  void finish_all(ChunkId first);
  void publish_all(ChunkId first);
  void close_step(const modes::Action& action);
  void close_evaluation(const modes::Action& action);
  void compare_background(fleet::WorkerId worker);
  void compare_probes(const modes::Action& action);
  /// What is here of the lease, to be compared.
  void sketch(modes::LeaseId lease);
  void measure_late(const modes::Action& action);
  void diverged(const modes::Action& action);
  [[nodiscard]] std::string waiting_for() const;
  [[nodiscard]] std::optional<Planned> forecast(std::uint64_t global_batch, std::uint64_t local_steps = 1);

  CoordinatorOptions options;
  ps::Server server;
  CoordinatorOutput& output;
  MeasuredPerformance performance;
  cluster::CoordinatorMachine machine;
  Sessions sessions;
  KnownWorkers workers;
  Uploads uploads;
  StateSender state;
  WeightsSender weights;
  GradientNoise noise;
  Sketches sketches;
  Probes probes;
  DeviceSteps on_device;
  StepMaker steps;
  Evaluations evaluations;
  Outbox outbox;
  Delegator delegator;
  Inbox inbox;
  Time now{};
  SessionId device_session = 0;  // whose device makes the steps, while one does
  bool device_refused = false;
  std::vector<modes::Event> events;  // waiting for the machine
  modes::Actions actions;
  bool feeding = false;
  bool failed = false;
};

}  // namespace motley::engine
