#pragma once
// The arithmetic of a train step on the coordinator: chunks are summed, the gradient clipped, the weights updated, and
// what came of it is written down. What it asks of coverage and leases is handed in. One thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "codec/codec.h"
#include "engine/head/coordinator.h"
#include "engine/head/device_steps.h"
#include "engine/head/sessions.h"
#include "engine/head/step_norms.h"
#include "engine/head/uploads.h"
#include "ps/server.h"

namespace motley::engine {

class StepMaker {
 public:
  /// REQUIRES all of these outlive this.
  StepMaker(ps::Server& server, Uploads& uploads, DeviceSteps& on_device)
      : server_(server), uploads_(uploads), on_device_(on_device) {}

  /// Before the first reduce() of a step: its learning rate is that of so many workers as contributed.
  void rate_by_workers(const cluster::CoordinatorMachine& machine, const KnownWorkers& workers, ChunkId first);
  /// Sums the pieces of a chunk, and frees them; where steps are made on a device, they are collected for it.
  void reduce(ChunkId chunk, const modes::Coverage& coverage, StepNorms& norms);
  /// The step as it was, but for its noise. REQUIRES every chunk is applied.
  StepClosed describe(const cluster::CoordinatorMachine& machine, const KnownWorkers& workers, Time now);

 private:
  ps::Server& server_;
  Uploads& uploads_;
  DeviceSteps& on_device_;
  std::vector<codec::Encoded> parts_;        // kept for its memory, as is
  std::vector<StepNorms::Part> norm_parts_;  // of these
  ChunkId last_reduced_ = 0;
  std::optional<std::uint64_t> rated_;  // the step whose rate is known
};

}  // namespace motley::engine
