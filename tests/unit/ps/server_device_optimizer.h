#pragma once
// A device whose memory is a server of its own: its steps have the bits of any other server's.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "motley/device_optimizer.h"
#include "ps/kernels.h"
#include "ps/server.h"

namespace motley::ps {

class ServerDeviceOptimizer final : public DeviceOptimizer {
 public:
  /// `server`: of the settings that settle() will meet.
  explicit ServerDeviceOptimizer(Server server) : server_(std::move(server)) {
    for (const Chunk& chunk : server_.layout().chunks()) sums.emplace_back(chunk.elements);
  }

  Status settle(const Snapshot& state, OptimizerKind) override {
    if (full) return Error{ErrorCode::memory, "full", ""};
    server_.adopt(state);
    settled = true;
    return {};
  }
  Result<StepNumbers> reduce(double weight, std::uint64_t samples) override {
    bool finite = true;
    double squares_of_all = 0;
    for (ChunkId chunk = 0; chunk < sums.size(); ++chunk) {
      finite = finite && std::ranges::all_of(sums[chunk], [](float value) { return std::isfinite(value); });
      const std::span<const float> sum = sums[chunk];
      server_.reduce(chunk, {&sum, 1}, weight, samples);
      if (!server_.clips()) squares_of_all += squares(server_.gradient(chunk).floats());
    }
    if (!finite) return StepNumbers{loss_sum, std::numeric_limits<double>::quiet_NaN()};
    return StepNumbers{loss_sum, server_.limits_norm() ? server_.gradient_norm() : std::sqrt(squares_of_all)};
  }
  Status update(std::span<const StepScalars>, float) override {
    if (Status closed = server_.close_gradient(); !closed) return closed;
    for (ChunkId chunk = 0; chunk < sums.size(); ++chunk) server_.apply(chunk);
    server_.finish_step();
    return {};
  }
  bool put_aside() override {
    if (room) aside_ = server_.snapshot();
    return room;
  }
  Result<Snapshot> download(bool aside) override {
    if (gone) return Error{ErrorCode::internal, "the device is gone", ""};
    return aside ? aside_ : server_.snapshot();
  }
  void leave() override { settled = false; }

  std::vector<std::vector<float>> sums;  // by chunk: what a pass leaves
  bool full = false, gone = false, settled = false;
  bool room = false;    // for a copy of all
  double loss_sum = 0;  // of the newest pass

 private:
  Server server_;
  Snapshot aside_;
};

}  // namespace motley::ps
