#pragma once
// What the engine says, as events of the program and records on disk: the one place where its numbers get names.

#include <string>
#include <vector>

#include "engine/head/coordinator.h"
#include "report/event.h"
#include "store/ledger.h"

namespace motley::runtime {

report::WorkerChanged event_of(const engine::WorkerChange& change);
report::PlanMade event_of(const engine::Planned& plan);
/// Without what only connections know: the bytes of `workers`. `steps`: until the end of the run.
report::StepDone event_of(const engine::StepClosed& step, std::uint64_t steps);
/// `scores`: names; an "accuracy" among them is that of the evaluation.
report::EvalDone event_of(const engine::Evaluated& evaluation, bool has_accuracy,
                          const std::vector<std::string>& scores);
/// `paused`: the run waits there, and the optimizer's part belongs to whoever asks.
report::ModelState state_of(const ps::Server& server, bool held);
store::LedgerStep record_of(const engine::StepClosed& step, std::uint32_t incarnation, bool with_norm);

/// What the steps since the last eval point add up to.
class SinceEvalPoint {
 public:
  void add(const store::LedgerStep& step, double seconds, double learning_rate);
  /// And begins anew.
  report::EvalPointReached take(std::uint64_t epoch, std::uint64_t version, report::ModelState state);

 private:
  double loss_sum_ = 0, weight_ = 0, seconds_ = 0, learning_rate_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace motley::runtime
