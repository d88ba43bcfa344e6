#pragma once
// The steps of a delegation. They go on from a fork of the server with the same arithmetic, so the bits are those of
// steps made by lease; each is handed back as it is done. Where weights and state stay on a device, they are handed
// back now and then.

#include <cstdint>
#include <functional>

#include "base/batch_plan.h"
#include "base/time.h"
#include "engine/local/delegated_steps.h"
#include "engine/local/local_trainer.h"

namespace motley::engine {

class Soloist final : public LocalTrainer {
 public:
  explicit Soloist(DelegatedSteps order);

  /// See ps::Server. REQUIRES resident().
  [[nodiscard]] std::function<Result<ps::Snapshot>()> download_in_background() const {
    return server_->download_in_background(*device_);
  }
  [[nodiscard]] bool more() const noexcept { return made_ < order_.steps; }
  [[nodiscard]] std::uint64_t number() const noexcept { return order_.number; }
  [[nodiscard]] const LossState& state() const noexcept { return order_.state; }
  /// Positions of the next step.
  [[nodiscard]] StepRange pass() const { return order_.batches.range(version()); }
  /// These are computed. Errors: see whole(). After an error it is not to be used again.
  [[nodiscard]] Status took(const Outcome& outcome) const { return whole(outcome); }
  /// The step whose gradient is here. REQUIRES took() went well. Errors: see update().
  Result<DelegatedStep> finish(double compute_seconds, Time now);

 private:
  [[nodiscard]] std::uint64_t samples() const noexcept override { return pass().count; }

  DelegatedSteps order_;
  std::uint64_t made_ = 0;
  Time since_;
};

}  // namespace motley::engine
