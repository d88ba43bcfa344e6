#pragma once
// Steps of the optimizer that one device makes without asking. Takes what the task loop yields for the samples of a
// step, and makes the step of it: here, or where the device has its memory. Which steps these are, and what comes of
// them, is for Soloist (steps of the run) and LocalSteps (of a round) to say. One thread at a time, apart from what
// Sink allows.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "compute/task_io.h"
#include "motley/bytes.h"
#include "motley/device_optimizer.h"
#include "motley/result.h"
#include "ps/server.h"

namespace motley::engine {

class LocalTrainer : public Weights, public Sink {
 public:
  /// Makes the steps where the device has its memory from now on. False: it has none (null) or no room, or batches are
  /// in halves, or the optimizer is from outside; then they are made here. REQUIRES no step begun.
  bool settle(DeviceOptimizer* device);
  [[nodiscard]] bool resident() const noexcept { return device_ != nullptr; }
  /// Weights and state after the steps so far. REQUIRES resident().
  [[nodiscard]] Result<ps::Snapshot> download() const { return server_->download(*device_); }
  /// The number of the next step.
  [[nodiscard]] std::uint64_t version() const noexcept { return server_->version(); }

  std::span<const float> get(ChunkId chunk) override;
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override;
  void ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept override;

 protected:
  LocalTrainer() = default;
  explicit LocalTrainer(std::shared_ptr<ps::Server> server) : server_(std::move(server)) {}
  /// Of the next step.
  [[nodiscard]] virtual std::uint64_t samples() const noexcept = 0;
  /// Goes on from the server's state, here.
  void begin_steps();
  /// The samples of the step are computed. Errors: diverged (not finite; nothing was updated), internal (not all of its
  /// gradient came). After an error the server is in the middle of a step.
  [[nodiscard]] Status whole(const Outcome& outcome) const;
  /// Makes the step. REQUIRES whole(). Errors: diverged, internal; of a resident one or an optimizer from outside.
  Status update();

  std::shared_ptr<ps::Server> server_;
  DeviceOptimizer* device_ = nullptr;
  // Of the step; from update() on its gradient's norm too.
  bool begun_ = false;
  double step_weight_ = 0, step_loss_ = 0, step_norm_ = 0;

 private:
  [[nodiscard]] bool finite() const noexcept;
  /// By what the sum of its gradients is divided.
  [[nodiscard]] double divisor() const noexcept { return step_weight_ > 0 ? step_weight_ : 1; }

  // What is kept by chunk is apart for each: chunks may come from several threads.
  enum class Sum : std::uint8_t { awaited, taken, not_finite };
  std::vector<Sum> sums_;
  std::vector<SharedBytes> held_;  // weights whose spans were given out
};

}  // namespace motley::engine
