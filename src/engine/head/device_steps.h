#pragma once
// Steps that the device of a worker of this process makes while others contribute to them: its own gradient stays
// there, and weights come to the host once a step. One thread at a time.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/head/uploads.h"
#include "motley/device_server.h"
#include "ps/server.h"

namespace motley::engine {

class DeviceSteps {
 public:
  /// REQUIRES server and uploads outlive this.
  DeviceSteps(ps::Server& server, Uploads& uploads) : server_(server), uploads_(uploads) {}

  /// Steps are made there; null: on the host.
  [[nodiscard]] DeviceServer* device() const noexcept { return device_.get(); }
  /// From now on, until offload(). REQUIRES no step begun, an optimizer of the server's own. Errors: memory.
  Status move_to(std::shared_ptr<DeviceServer> device);
  /// Takes the pieces of a chunk from the uploads.
  void collect(ChunkId chunk, const modes::Coverage& coverage);
  [[nodiscard]] bool all_collected() const noexcept { return count_ == collected_.size(); }
  /// The step of what was collected: the server is at the next version. Where the device cannot sum, `left` says why,
  /// and the host has the sums and makes the rest. Errors: the optimizer's state is lost.
  Status make(double weight, std::uint64_t samples, std::optional<Error>& left);
  /// Of the newest step, before clipping; 0 where that is not limited.
  [[nodiscard]] double gradient_norm() const { return server_.limits_norm() ? norm_ : 0; }
  /// The server has the optimizer's state. REQUIRES no step begun. Errors: it is lost.
  Status download_state();
  /// The same, and steps are made on the host from now on.
  Status offload();

 private:
  Status sum(double weight, std::uint64_t samples);
  Status sum_here(DeviceServer& device, double weight, std::uint64_t samples);

  ps::Server& server_;
  Uploads& uploads_;
  std::shared_ptr<DeviceServer> device_;
  bool has_state_ = false;                            // the newest, which is not here
  std::vector<std::vector<GradientPart>> collected_;  // by chunk
  std::size_t count_ = 0;                             // chunks that have theirs
  double norm_ = 0;
};

}  // namespace motley::engine
