#pragma once
// Steps that a worker of the coordinator's own process makes without asking. It goes on from a fork of the server with
// the same arithmetic, so the bits are those of steps made by lease; each step is handed back as it is done, by handles
// to immutable bytes. Where weights and state stay on a device, they are handed back now and then. One thread at a
// time, apart from what Sink allows.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/batch_plan.h"
#include "base/time.h"
#include "compute/task_io.h"
#include "motley/residence.h"
#include "ps/server.h"

namespace motley::engine {

struct StretchOrder {
  std::uint64_t number = 0;
  std::uint64_t steps = 0;
  BatchPlan batches;                   // which holds for all of them
  Time opened{};                       // the first step counts from here
  std::shared_ptr<ps::Server> server;  // a fork, at the version of the first step
  LossState state{};
};

struct StretchStep {
  std::uint64_t number = 0;  // of the stretch
  std::uint64_t step = 0, samples = 0;
  double weight = 0, loss_sum = 0, gradient_norm = 0, learning_rate = 0;
  double compute_seconds = 0;
  Duration duration{};
  /// Without weights: they are still on the device, and come with a later step or the end.
  ps::Snapshot after;
};

struct StretchEnd {
  std::uint64_t number = 0;  // of the stretch
  std::optional<Error> failure;
  ps::Snapshot after;  // without weights, unless steps came without
};

/// Takes what the task loop yields for the batch of a step, and makes the step of it.
class Soloist final : public Weights, public Sink {
 public:
  explicit Soloist(StretchOrder order);

  /// Makes the steps where the device has its memory, from the first one on. False: there is no room, or batches
  /// are in halves. REQUIRES no step made.
  bool settle(Residence& there);
  [[nodiscard]] bool resident() const noexcept { return there_ != nullptr; }
  /// Weights and state after the steps so far. REQUIRES resident().
  [[nodiscard]] Result<ps::Snapshot> bring() const { return order_.server->bring(*there_); }
  /// See ps::Server. REQUIRES resident().
  [[nodiscard]] std::function<Result<ps::Snapshot>()> bring_beside() const {
    return order_.server->bring_beside(*there_);
  }

  [[nodiscard]] bool more() const noexcept { return made_ < order_.steps; }
  [[nodiscard]] std::uint64_t version() const noexcept { return order_.server->version(); }
  [[nodiscard]] std::uint64_t number() const noexcept { return order_.number; }
  [[nodiscard]] const LossState& state() const noexcept { return order_.state; }
  /// Positions of the next step.
  [[nodiscard]] StepRange pass() const { return order_.batches.range(version()); }
  /// These are computed. Errors: diverged (not finite; nothing was updated), internal (not all of its gradient came).
  /// After an error it is not to be used again.
  Status took(const Outcome& outcome);
  /// The step whose gradient is here. REQUIRES took() went well. Errors: diverged, internal; of a resident one alone.
  Result<StretchStep> finish(double compute_seconds, Time now);

  std::span<const float> get(ChunkId chunk) override;
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override;
  void ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept override;

 private:
  /// By what the sum of its gradients is divided.
  [[nodiscard]] double divisor() const noexcept { return weight_ > 0 ? weight_ : 1; }
  /// The optimizer's part of a step: fills in what it yields.
  Status update(StretchStep& step);

  StretchOrder order_;
  Residence* there_ = nullptr;
  std::uint64_t made_ = 0;
  Time since_;
  // Of the step. What is kept by chunk is apart for each: chunks may come from several threads.
  double weight_ = 0, loss_sum_ = 0;
  bool begun_ = false, finite_ = true, whole_ = false;
  enum class Sum : std::uint8_t { awaited, taken, not_finite };
  std::vector<Sum> sums_;
  std::vector<SharedBytes> held_;  // weights whose spans were given out
};

}  // namespace motley::engine
