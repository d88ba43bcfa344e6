#pragma once
// The arithmetic of a train step on the coordinator: chunks are summed, the gradient clipped, the weights updated, and
// what came of it is written down. What it asks of coverage and leases is handed in. One thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "codec/codec.h"
#include "engine/head/coordinator.h"
#include "engine/head/sessions.h"
#include "engine/head/step_norms.h"
#include "engine/head/uploads.h"
#include "ps/server.h"

namespace motley::engine {

class StepMaker {
 public:
  /// REQUIRES server and uploads outlive this.
  StepMaker(ps::Server& server, Uploads& uploads) : server_(server), uploads_(uploads) {}

  /// Before the first reduce() of a step: its learning rate is that of so many workers as contributed.
  void rate_by_workers(const cluster::CoordinatorMachine& machine, const KnownWorkers& workers, ChunkId first);
  /// Sums the pieces of a chunk, and frees them; where steps are made on a device, they are kept for make_on_device().
  void reduce(ChunkId chunk, const modes::Coverage& coverage, StepNorms& norms);
  /// Every chunk of a step on a device was reduced: its sums and the update. `left`: because of what the device has
  /// come to, sums are on the host, and so is the rest of the step. Errors: its state is lost.
  Status make_on_device(const modes::Coverage& coverage, std::optional<Error>& left);
  [[nodiscard]] bool all_collected() const noexcept { return collected_count_ == collected_.size(); }
  /// What needs the whole gradient.
  Status clip();
  /// The step as it was, but for its noise. REQUIRES every chunk is applied.
  StepClosed describe(const cluster::CoordinatorMachine& machine, const KnownWorkers& workers, Time now);

 private:
  void collect(ChunkId chunk, const modes::Coverage& coverage);
  Status reduce_here(DeviceServer& device, double weight, std::uint64_t samples);

  ps::Server& server_;
  Uploads& uploads_;
  std::vector<codec::Encoded> parts_;                 // kept for its memory, as is
  std::vector<StepNorms::Part> norm_parts_;           // of these
  std::vector<std::vector<GradientPart>> collected_;  // by chunk, for the device
  std::size_t collected_count_ = 0;                   // chunks that have theirs
  ChunkId last_reduced_ = 0;
  std::optional<std::uint64_t> rated_;  // the step whose rate is known
};

}  // namespace motley::engine
