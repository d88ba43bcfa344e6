#pragma once
// Steps that a worker of the coordinator's own process makes without asking. It goes on from a fork of the server with
// the same arithmetic, so the bits are those of steps made by lease; each step is handed back as it is done, by handles
// to immutable bytes. One thread at a time, apart from what Sink allows.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/batch_plan.h"
#include "base/time.h"
#include "motley/computation.h"
#include "ps/server.h"

namespace motley::engine {

struct StretchOrder {
  std::uint64_t number = 0;
  std::uint64_t steps = 0;
  BatchPlan batches;                   // which holds for all of them
  Time opened{};                       // the first step counts from here
  std::shared_ptr<ps::Server> server;  // a fork, at the version of the first step
};

struct StretchStep {
  std::uint64_t number = 0;  // of the stretch
  std::uint64_t step = 0;
  double weight = 0, loss_sum = 0, gradient_norm = 0;
  double compute_seconds = 0;
  Duration duration{};
  ps::Snapshot after;
  std::vector<SharedBytes> gradients;  // final, by chunk: for the redo log
};

/// Takes what a Computation yields for the whole batch of a step, and makes the step of it.
class Soloist final : public Weights, public Sink {
 public:
  explicit Soloist(StretchOrder order);

  [[nodiscard]] bool more() const noexcept { return made_ < order_.steps; }
  [[nodiscard]] std::uint64_t version() const noexcept { return order_.server->version(); }
  [[nodiscard]] std::uint64_t number() const noexcept { return order_.number; }
  /// Positions of the next step.
  [[nodiscard]] StepRange pass() const { return order_.batches.range(version()); }
  /// The step whose gradient is here. Errors: diverged (not finite; nothing was updated), internal (not the whole
  /// gradient). After an error it is not to be used again.
  Result<StretchStep> finish(const Outcome& outcome, double compute_seconds, Time now);

  std::span<const float> get(ChunkId chunk) override;
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override;
  void ready(ChunkId chunk, std::span<const float> gradient_sum) noexcept override;

 private:
  StretchOrder order_;
  std::uint64_t made_ = 0;
  Time since_;
  // Of the step.
  bool begun_ = false, finite_ = true;
  double weight_ = 0, loss_sum_ = 0;
  enum class Sum : std::uint8_t { awaited, reduced, not_finite };
  std::vector<Sum> sums_;          // by chunk, each with a byte of its own: chunks may come from several threads
  std::vector<SharedBytes> held_;  // weights whose spans were given out
};

}  // namespace motley::engine
