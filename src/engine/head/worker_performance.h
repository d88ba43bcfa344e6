#pragma once
// What is measured of each worker, over all its sessions. Pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fleet/member.h"
#include "plan/worker_link.h"
#include "plan/worker_speed.h"

namespace motley::engine {

struct WorkerPerformance {
  // Evaluation has no backward pass and no gradient on the wire, so it has models of its own.
  plan::WorkerSpeed train{}, evaluate{};
  plan::WorkerLink link;
  std::uint64_t micro_batch = 0;  // 0: unknown
  bool pass_sizes = false;        // its passes have two sizes (compute/pass_sizes.h)
  double part = 0;                // of the samples of the newest train pass
  std::uint32_t sessions = 0;     // 2 while one that came back replaces the one before

  plan::WorkerSpeed& speed(PassKind kind) noexcept { return kind == PassKind::evaluate ? evaluate : train; }
  [[nodiscard]] const plan::WorkerSpeed& speed(PassKind kind) const noexcept {
    return kind == PassKind::evaluate ? evaluate : train;
  }
  /// For which its device is busy with so many to train; empty until it is measured.
  [[nodiscard]] std::optional<double> computes(std::uint64_t samples) const {
    const std::optional<plan::Affine> time = train.device().time();
    return time ? std::optional(time->seconds(static_cast<double>(samples))) : std::nullopt;
  }
};

class WorkerPerformances {
 public:
  /// `unknown`: of whom nothing was told yet.
  explicit WorkerPerformances(const WorkerPerformance& unknown) : unknown_(unknown) {}

  [[nodiscard]] WorkerPerformance& at(fleet::WorkerId worker) {
    if (all_.size() < worker) all_.resize(worker, unknown_);
    return all_[worker - 1];
  }
  [[nodiscard]] const WorkerPerformance& of(fleet::WorkerId worker) const {
    return worker <= all_.size() ? all_[worker - 1] : unknown_;
  }
  /// Of the highest number that anything was told of.
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  /// Those of other machines that are here.
  [[nodiscard]] std::size_t remotes_here() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        all_, [](const WorkerPerformance& each) { return each.sessions > 0 && each.link.remote(); }));
  }

 private:
  WorkerPerformance unknown_;
  std::vector<WorkerPerformance> all_;
};

}  // namespace motley::engine
